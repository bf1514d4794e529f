"""What a test tells `sick_calls.c`: which call below which folder fails, and how.

The library and the test share one small file; the layout is `struct sickness` of the C source.
"""

from __future__ import annotations

import errno
import mmap
import struct
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

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
