"""The n-th write, rename, link, unlink or read of an apply fails, or ends its process: nothing is lost, and it is said.

Calls are counted over all threads, Python's and the JVM's, below one place: the table, the state folder or the ledger.
With an even n the fault lasts, as a full disk or a closed folder does; with an odd one it is a single call. The whole
matrix runs with `make fault`. All effects meet the same table at a place, a call and an n: where one effect found that
an apply makes fewer calls, the others need not try.
"""

from __future__ import annotations

import errno
import mmap
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import pytest

from tests.support.faults.after_faults import an_hour_later, assert_converges, assert_whole
from tests.support.faults.fault_tables import SHAPES, FaultTable, make_fault_table
from tests.support.faults.preloaded import compiled
from tests.support.faults.sick_worker import SickWorker

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

# What a test tells `sick_calls.c`, by a small file that both share; the layout is `struct sickness` of the C source.
_NUMBERS = struct.Struct("8i")
_TEXT_BYTES = 1024
SIZE_BYTES = _NUMBERS.size + 3 * _TEXT_BYTES


class Call(Enum):
    """A system call, with all its relatives: `pwrite` and `writev` are writes, `remove` is an unlink."""

    WRITE = 1
    RENAME = 2
    LINK = 3
    UNLINK = 4
    READ = 5


class Effect(Enum):
    """What the call ends with: an error of the operating system, or the end of its process."""

    EACCES = errno.EACCES
    ENOSPC = errno.ENOSPC
    EIO = errno.EIO
    SIGKILL = 0


@dataclass(frozen=True)
class Sickness:
    """The n-th call of a kind below a folder fails; with ``lasting`` every later one, too.

    ``left_out`` is a folder below it whose calls do not count.
    """

    call: Call
    effect: Effect
    folder: Path
    number: int
    lasting: bool = False
    left_out: Path | None = None


class SickCalls:
    """The shared file. Armed only while a sickness is in force."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(b"\0" * SIZE_BYTES)
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), SIZE_BYTES)

    def arm(self, sickness: Sickness) -> None:
        """Begin to count, from 0."""
        texts = (str(sickness.folder), str(sickness.left_out or ""), "")
        for place, text in enumerate(texts):
            start = _NUMBERS.size + place * _TEXT_BYTES
            self._memory[start : start + _TEXT_BYTES] = text.encode().ljust(_TEXT_BYTES, b"\0")
        numbers = (0, sickness.call.value, sickness.effect.value, sickness.number, int(sickness.lasting), 0, 0, 0)
        self._memory[: _NUMBERS.size] = _NUMBERS.pack(*numbers)
        self._set_armed(1)

    def disarm(self) -> None:
        """Let every call through."""
        self._set_armed(0)

    def _set_armed(self, value: int) -> None:
        self._memory[:4] = struct.pack("i", value)

    @property
    def num_calls(self) -> int:
        """Calls that were counted."""
        return int(_NUMBERS.unpack(self._memory[: _NUMBERS.size])[5])

    @property
    def num_failed(self) -> int:
        """Calls that failed."""
        return int(_NUMBERS.unpack(self._memory[: _NUMBERS.size])[6])

    @property
    def first_path(self) -> str:
        """The path of the first call that failed; of a rename or a link the new name."""
        start = _NUMBERS.size + 2 * _TEXT_BYTES
        return self._memory[start : start + _TEXT_BYTES].rstrip(b"\0").decode()


PLACES = ("table", "state", "ledger")
NUMBERS = range(1, 21)
CAUSES = {
    Effect.EACCES: ("Permission denied", "permission denied"),
    Effect.ENOSPC: ("No space left on device", "no space left", "storage is full"),
    Effect.EIO: ("Input/output error", "I/O error"),
}
"""Words of which one must be in what is said."""

TEMPORARY = ("nothing_temporary_stays",)
"""Delta writes checksums through a temporary file in the log, and does not remove it when its own writing fails."""

CELLS = [
    (call, effect)
    for call in Call
    for effect in Effect
    if (call, effect) != (Call.READ, Effect.ENOSPC)  # nothing fills a disk by reading
]


@pytest.fixture(scope="module")
def sick_calls(tmp_path_factory: pytest.TempPathFactory) -> SickCalls:
    return SickCalls(tmp_path_factory.mktemp("sick") / "shared")


@pytest.fixture(scope="module")
def too_few_calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file for each n that an apply does not reach, for all processes of this test run."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "too_few_calls"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory, sick_calls: SickCalls) -> Iterator[SickWorker]:
    folder = tmp_path_factory.mktemp("worker")
    library = compiled("sick_calls", folder)
    worker = SickWorker(folder, {"LD_PRELOAD": str(library), "SICK_CALLS": str(sick_calls.path)})
    yield worker
    worker.end()


def folders_of(table: FaultTable, place: str) -> tuple[Path, Path | None]:
    """The folder of a place, and what of it does not count: the ledger lies in the state folder."""
    match place:
        case "table":
            return table.path, None
        case "ledger":
            return table.ledger, None
        case _:
            return table.ledger.parent, table.ledger


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("call", "effect"), CELLS, ids=[f"{call.name} {effect.name}" for call, effect in CELLS])
@pytest.mark.contradicts(*TEMPORARY, reason="Delta leaves its own temporary files in a log; in the state nothing may")
@pytest.mark.sampled(1)
def test_a_call_that_fails_loses_nothing_and_is_named(
    call: Call,
    effect: Effect,
    place: str,
    number: int,
    tmp_path: Path,
    worker: SickWorker,
    sick_calls: SickCalls,
    too_few_calls: Path,
) -> None:
    counted = too_few_calls / f"{call.name} {place} {number}"
    if counted.exists():
        pytest.skip(counted.read_text(encoding="utf-8"))
    seed = number + len(SHAPES) * PLACES.index(place) + 100 * call.value
    table = make_fault_table(tmp_path / "project", seed)
    worker.start()
    folder, left_out = folders_of(table, place)
    sick_calls.arm(Sickness(call, effect, folder, number, lasting=number % 2 == 0, left_out=left_out))
    try:
        code, said = worker.apply(table.project)
    finally:
        sick_calls.disarm()
    if not sick_calls.num_failed:
        assert code == 0, said[-4000:]
        counted.write_text(f"an apply makes {sick_calls.num_calls} such calls", encoding="utf-8")
        pytest.skip(counted.read_text(encoding="utf-8"))
    assert "Traceback" not in said
    assert "E699" not in said, said[-4000:]
    assert_whole(table)
    if effect is Effect.SIGKILL:
        assert code != 0, said[-4000:]
        worker.end()  # Python is gone, or its JVM
        an_hour_later(table.project)
    elif code != 0:
        assert any(words in said for words in CAUSES[effect]), f"{sick_calls.first_path}\n{said[-4000:]}"
        assert str(folder) in said or table.path.name in said, said[-4000:]
    runs = sorted(path.name for path in (table.project / ".maintainer" / "runs").glob("2*"))
    codes = {runs[0]: code} if runs and code >= 0 else {}
    but_not = () if place == "state" else TEMPORARY
    assert_converges(table, lambda: worker.apply(table.project), codes, but_not=but_not)
