"""An apply is killed, terminated or stopped at sixteen points, five times each; then `apply` converges.

The process is a real one on a real table, and is struck from outside while it is held at its point. The whole matrix
is 16 points x 5 blows x 5 seeds; a seed says what the table is like, which lane rewrites it, and in which step a point
lies that each step has. `make fault` runs all of it.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.checker.contradictions import assert_truth
from tests.support.faults.after_faults import an_hour_later, assert_converges, assert_whole
from tests.support.faults.blows import Blow, victim
from tests.support.faults.fault_tables import FaultTable, make_fault_table
from tests.support.faults.held_apply import POINTS, SHORT_LEASE_SECONDS
from tests.support.faults.preloaded import compiled
from tests.support.product import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SEEDS = range(5)
LEASE_SECONDS = 3.0
KILLED = -signal.SIGKILL
TERMINATED = 143
UNTIL_THE_NEXT_RUN = ("leases_are_given_back", "nothing_temporary_stays", "no_unknown_files", "no_checksum_alone")
"""Rules about what a killed run may leave for the next one to tell of."""

UNHANDLED = {"policies loaded": -signal.SIGTERM, "report written": -signal.SIGTERM}
"""Points at which SIGTERM ends the process at once: nothing has begun yet, or everything is over."""


@pytest.fixture(scope="module")
def holding_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("hold_commits", tmp_path_factory.mktemp("hold"))


@pytest.mark.contradicts(
    "nothing_temporary_stays",
    reason="Delta's own, of a commit that was killed; at every other point it is asserted below",
)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("blow", Blow, ids=lambda blow: blow.value)
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.sampled(1)
def test_whatever_ends_an_apply_nothing_is_lost_and_the_next_one_converges(
    point: str,
    blow: Blow,
    seed: int,
    spark: SparkSession,
    tmp_path: Path,
    holding_library: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = make_fault_table(tmp_path / "project", seed)

    def apply() -> tuple[int, str]:
        capsys.readouterr()
        code = run(["--project", str(table.project), "apply", "--yes"])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    environment, commit = {}, None
    if point == "published":
        environment = {"LD_PRELOAD": str(holding_library), "HOLD_COMMITS": str(tmp_path / "held"), "HOLD_AFTER": "1"}
        commit = table.shape.commit
    lease_ends = blow is Blow.STOPPED and seed % 2 == 1
    if lease_ends:
        environment[SHORT_LEASE_SECONDS] = str(LEASE_SECONDS)

    def meanwhile() -> None:
        if lease_ends:
            time.sleep(LEASE_SECONDS + 0.5)
        before = assert_whole(table).version
        code, said = apply()
        assert code in (0, 4), said[-4000:]
        if code == 4:
            assert "A406" in said
            assert assert_whole(table).version == before

    with victim(table.project, point, seed, tmp_path / "held", environment=environment, commit=commit) as held:
        held.wait_until_held()
        runs = _runs(table)
        code = held.strike(blow, meanwhile)
        said = held.said()
    assert "Traceback" not in said, said[-4000:]
    in_ledger = (point == "published" and commit == ("ledger", "WRITE")) or (point, seed % 2) == (
        "before the ledger",
        0,
    )
    _assert_code(point, blow, code, said, in_ledger=in_ledger)
    assert_whole(table)
    # Also before anybody has looked at what was left, no record claims what is not so.
    exit_codes = {name: code for name in runs[:1] if code >= 0}
    assert_truth(table.project, exit_codes=exit_codes, but_not=UNTIL_THE_NEXT_RUN)
    an_hour_later(table.project)
    # Killed between the writing of a checksum and its renaming, Delta leaves a hidden file in the log.
    but_not = ("nothing_temporary_stays",) if point == "published" else ()
    assert_converges(table, apply, exit_codes, but_not=but_not)


def _runs(table: FaultTable) -> list[str]:
    return sorted(path.name for path in (table.project / ".maintainer" / "runs").glob("2*"))


def _assert_code(point: str, blow: Blow, code: int, said: str, *, in_ledger: bool) -> None:
    """Check the exit code: a run that was ended never says that it went well.

    ``in_ledger``: every table was done, and only the ledger's rows were not.
    """
    match blow:
        case Blow.PYTHON_KILLED | Blow.BOTH_KILLED:
            assert code == KILLED, said[-4000:]
        case Blow.TERMINATED if in_ledger:
            assert code == TERMINATED, said[-4000:]
            assert "the ledger" in said, said[-4000:]
        case Blow.TERMINATED:
            assert code == UNHANDLED.get(point, TERMINATED), said[-4000:]
        case Blow.JVM_KILLED if point == "report written":
            assert code == 0, said[-4000:]  # everything was done, and nothing needs a JVM any more
        case Blow.JVM_KILLED:
            assert code in (1, 2), said[-4000:]
            assert any(cause in said for cause in ("E601", "E607", "E612", "E652", "C703")), said[-4000:]
        case Blow.STOPPED:
            assert code in (0, 1, 4, 6), said[-4000:]
