"""Who made a writer's operation fail."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from tests.soak.judgement.commit_replay import LoggedCommit
from tests.soak.traffic.operation_ledger import ACKNOWLEDGED, OperationRecord

OURS = "maintainer"
OTHERS = "another writer"
UNCLEAR = "neither"
_WINNER = re.compile(r"committed at version (\d+)")
_FILE_GONE = re.compile(r"FileNotFound|FILE_NOT_EXIST|No such file|Object at location .* not found", re.IGNORECASE)
CLOCK_MS = 1000


@dataclass
class WriterFigures:
    """What one writer did, by outcome; failures by cause, with what the engine said first."""

    operations: int = 0
    landed: int = 0
    unknown_settled: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)


def cause_of(record: OperationRecord, commits: list[LoggedCommit]) -> str:
    """Return who made an operation fail: by the winner that the error names, else by who committed meanwhile."""
    if _FILE_GONE.search(record.error):
        return OURS
    winner = _WINNER.search(record.error)
    if winner is not None and int(winner.group(1)) < len(commits):
        return OURS if commits[int(winner.group(1))].maintainer_kind else OTHERS
    begun, ended = record.begun_ms - CLOCK_MS, record.ended_ms + CLOCK_MS
    meanwhile = [commit for commit in commits if begun <= commit.timestamp_ms <= ended]
    if any(commit.maintainer_kind for commit in meanwhile):
        return OURS
    others = [commit for commit in meanwhile if commit.operation_name != record.operation.name]
    return OTHERS if others else UNCLEAR


def figures_by_writer(
    records: dict[str, OperationRecord], commits: dict[str, list[LoggedCommit]], landed: set[str]
) -> dict[str, WriterFigures]:
    """Count operations and failures of each writer."""
    figures: dict[str, WriterFigures] = {}
    for name, record in records.items():
        writer = figures.setdefault(record.operation.writer, WriterFigures())
        writer.operations += 1
        writer.landed += name in landed
        if record.outcome == ACKNOWLEDGED:
            continue
        if name in landed:
            writer.unknown_settled += 1
            continue
        cause = cause_of(record, commits[record.operation.table])
        writer.failures[cause] += 1
        writer.examples.setdefault(cause, f"{record.operation.name}: {record.error[:600]}")
    return figures
