"""What one part of planning decided: a step or none, and the files it leaves alone with reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from maintainer.model.plan.plan import LeftAlone
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import RewriteStep, SetPropertiesStep, VacuumStep
from maintainer.model.table.table_facts import DataFile, PartitionValues
from maintainer.units import count_of

MAX_NAMED_PARTITIONS = 20
"""Partitions left alone for one reason are named one by one up to this number, and counted together above it.

A plan over thousands of tables must stay readable and small; the counts stay exact either way.
"""


@dataclass(frozen=True, slots=True)
class Decision:
    """At most one step. Every live file is in a bin of the step or counted in exactly one ``LeftAlone``.

    ``blocked`` says why a step that is due is refused; where nothing else is due either, the table is blocked.
    ``properties`` are set before the step, which needs them.
    """

    step: RewriteStep | VacuumStep | None = None
    left_alone: tuple[LeftAlone, ...] = ()
    blocked: tuple[Reason, ...] = ()
    properties: SetPropertiesStep | None = None


@dataclass(frozen=True, slots=True)
class Partition:
    """The live files of one partition, smallest first. An unpartitioned table is one partition without values."""

    values: PartitionValues
    files: tuple[DataFile, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of its files."""
        return sum(file.size_bytes for file in self.files)

    def is_written_after(self, moment_ms: int, rewritten_paths: frozenset[str] | None) -> bool:
        """Return whether anybody wrote data after a moment. A rewrite, of ours or named in the paths, writes none."""
        return any(
            file.modification_time_ms > moment_ms and not file.is_ours and file.path not in (rewritten_paths or ())
            for file in self.files
        )


def files_of(partitions: Iterable[Partition]) -> list[DataFile]:
    """Return the files of partitions, in their order."""
    return [file for partition in partitions for file in partition.files]


def partition_text(values: PartitionValues) -> str:
    """Print partition values as people know them from paths: ``day=2026-11-20/country=null``; empty text is ``''``."""
    return "/".join("{}={}".format(column, "null" if value is None else value or "''") for column, value in values)


def leave_files(code: ReasonCode, text: str, files: Iterable[DataFile], origin: str | None = None) -> LeftAlone:
    """Leave files alone for one reason, counted together."""
    sizes = [file.size_bytes for file in files]
    return LeftAlone(Reason(code, text, origin), len(sizes), sum(sizes))


def leave_counted(
    code: ReasonCode, text: str, files: Sequence[DataFile], origin: str | None = None, noun: str = "file"
) -> tuple[LeftAlone, ...]:
    """Leave files alone for one reason that begins with their number; nothing, if there are none."""
    return (leave_files(code, f"{count_of(len(files), noun)} {text}", files, origin),) if files else ()


def files_text(num_files: int, num_partitions: int) -> str:
    """Say how many files, and of how many partitions where they are of several."""
    return count_of(num_files, "file") + (f" of {num_partitions:,} partitions" if num_partitions > 1 else "")


def leave_partitions(
    code: ReasonCode,
    text: Callable[[int, int], str],
    partitions: Sequence[Partition],
    origin: str | None = None,
) -> tuple[LeftAlone, ...]:
    """Leave files of partitions alone: named one by one while they are few, else counted together.

    Args:
        code: The reason's code.
        text: The reason's sentence, made from the number of files and of partitions that it speaks of.
        partitions: What is left alone; each holds only the files meant.
        origin: The policy line behind it.
    """
    if len(partitions) > MAX_NAMED_PARTITIONS:
        files = files_of(partitions)
        return (leave_files(code, text(len(files), len(partitions)), files, origin),)
    return tuple(
        replace(leave_files(code, text(len(each.files), 1), each.files, origin), partition_values=each.values or None)
        for each in partitions
    )
