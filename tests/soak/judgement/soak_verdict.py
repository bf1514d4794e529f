"""Everything that a soak is judged by: figures, and the list of what is not as it must be."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.soak.judgement.commit_replay import LoggedCommit, TableReplay, read_commits, replay
from tests.soak.judgement.failure_causes import OURS, WriterFigures, figures_by_writer
from tests.soak.judgement.soak_checks import (
    content,
    files_left_by_writers,
    files_on_disk,
    late_files,
    reader,
    reader_returns,
    rows_read,
    settled_operations,
    unnamed_files,
)
from tests.soak.process_memory import MIB, MemorySample, slope_a_minute
from tests.soak.soak_lake import TABLES
from tests.soak.soak_settings import MAX_EXTRA_FAILURES, WHOLE_RUN_SECONDS, SoakSettings
from tests.soak.traffic.operation_ledger import LedgerReader
from tests.soak.watched_process import WatchLife
from tests.support.checker.contradictions import contradictions

WARM_UP_SHARE = 1 / 3
MAX_PYTHON_SLOPE_MIB = 1.0
MAX_JVM_SLOPE_MIB = 3.0
LATE_SECONDS = 300.0
NEEDED_KINDS = ("compact", "zorder", "vacuum")
"""A soak in which the watch does not do all of these shows nothing."""


@dataclass
class TableFigures:
    """Files of one table: live at the end, ever added by writers, and on the disk."""

    version: int
    rows: int
    files_added_by_writers: int
    files_added_by_maintainer: int
    live_files: int
    files_on_disk: int
    files_deleted: int
    kinds: Counter[str]


@dataclass
class MemoryFigures:
    """Growth in the last life of the watch, after its warm-up."""

    minutes: float
    samples: int
    python_slope_mib: float
    jvm_slope_mib: float
    python_peak_mib: float
    jvm_peak_mib: float


@dataclass
class Verdict:
    """Figures of a soak, and what failed."""

    settings: SoakSettings
    life: WatchLife
    writers: dict[str, WriterFigures] = field(default_factory=dict)
    tables: dict[str, TableFigures] = field(default_factory=dict)
    readers: dict[str, int] = field(default_factory=dict)
    reader_returns: int = 0
    memory: MemoryFigures | None = None
    checker_seconds: float = 0.0
    last_apply_code: int | None = None
    failures: list[str] = field(default_factory=list)

    @property
    def operations(self) -> int:
        """Operations of all writers."""
        return sum(writer.operations for writer in self.writers.values())

    @property
    def failures_by_maintainer(self) -> int:
        """Operations that failed because of `maintainer`."""
        return sum(writer.failures[OURS] for writer in self.writers.values())

    @property
    def is_whole(self) -> bool:
        """Whether it was long enough to judge memory and disk."""
        return self.settings.seconds >= WHOLE_RUN_SECONDS


def judge(settings: SoakSettings, life: WatchLife, complaints: list[str], last_apply_code: int) -> Verdict:
    """Check everything that the soak left behind."""
    verdict = Verdict(settings, life, last_apply_code=last_apply_code)
    verdict.failures += complaints + life.complaints
    if last_apply_code != 0:
        verdict.failures.append(f"the last apply ended with exit code {last_apply_code}")
    records_reader = LedgerReader(settings.ledgers)
    records_reader.read_on()
    records = records_reader.records
    commits: dict[str, list[LoggedCommit]] = {}
    landed: set[str] = set()
    left_by_writers: list[Path] = []
    for table in TABLES.values():
        commits[table.name] = read_commits(table.path(settings))
        replayed = replay(commits[table.name], records)
        landed |= set(replayed.landed)
        verdict.failures += settled_operations(table, commits[table.name], records, replayed)
        verdict.failures += content(table, settings, replayed)
        if table.reader:
            verdict.failures += reader(table, settings, replayed)
        verdict.failures += unnamed_files(table, commits[table.name])
        left_by_writers += files_left_by_writers(table, settings, records, replayed)
        there = set(files_on_disk(table, settings))
        verdict.tables[table.name] = _table_figures(commits[table.name], replayed, there)
    verdict.writers = figures_by_writer(records, commits, landed)
    verdict.readers, verdict.reader_returns = rows_read(settings), reader_returns(settings)
    verdict.memory = memory_figures(life.samples)
    verdict.failures += _judged_figures(verdict)
    began = time.monotonic()
    verdict.failures += [
        f"the checker of truth: {text}" for text in contradictions(settings.root, before=left_by_writers)
    ]
    verdict.checker_seconds = time.monotonic() - began
    return verdict


def _table_figures(commits: list[LoggedCommit], replayed: TableReplay, there: set[str]) -> TableFigures:
    ours = [commit for commit in commits if commit.maintainer_kind]
    by_writers = {path for commit in commits if not commit.maintainer_kind for path in commit.adds}
    by_maintainer = {path for commit in ours for path in commit.adds} - by_writers
    live: set[str] = set()
    known: set[str] = set()
    for commit in commits:
        live = live - set(commit.removes) | set(commit.adds)
        known |= {*commit.adds, *commit.change_files}
    kinds = Counter(commit.maintainer_kind or "" for commit in ours)
    return TableFigures(
        commits[-1].version, len(replayed.rows), len(by_writers), len(by_maintainer), len(live),
        len(there), len(known - there), kinds,
    )  # fmt: skip


def memory_figures(samples: list[MemorySample]) -> MemoryFigures | None:
    """Return the growth in the last life, None where it was too short to say."""
    if not samples:
        return None
    last = [sample for sample in samples if sample.process_id == samples[-1].process_id and sample.jvm_bytes]
    warm = last[int(len(last) * WARM_UP_SHARE) :]
    if len(warm) < 2:
        return None
    return MemoryFigures(
        (warm[-1].seconds - warm[0].seconds) / 60,
        len(warm),
        slope_a_minute([(sample.seconds, sample.python_bytes / MIB) for sample in warm]),
        slope_a_minute([(sample.seconds, sample.jvm_bytes / MIB) for sample in warm]),
        max(sample.python_bytes for sample in samples) / MIB,
        max(sample.jvm_bytes for sample in samples) / MIB,
    )


def files_kept_too_long(settings: SoakSettings) -> list[str]:
    """Name tables with files that a vacuum could have taken long ago; asked before the last apply takes them.

    A reader may be away, and a killed watch be set back: so much longer a file may stay.
    """
    grace = settings.retention_seconds + settings.reader_pause_seconds + LATE_SECONDS
    complaints = []
    for name, table in TABLES.items():
        late = late_files(table, settings, read_commits(table.path(settings)), grace, int(time.time() * 1000))
        if late:
            complaints.append(
                f"{name}: {len(late)} files were removed more than {grace:.0f} s ago and lie there: {late[:3]}"
            )
    return complaints


def _judged_figures(verdict: Verdict) -> Iterator[str]:
    share = verdict.failures_by_maintainer / max(verdict.operations, 1)
    if share > MAX_EXTRA_FAILURES:
        yield f"{share:.2%} of the writers' operations failed because of maintainer, more than {MAX_EXTRA_FAILURES:.0%}"
    for name, writer in verdict.writers.items():
        # In a short run on a slow machine each of few updates may meet another writer.
        if not writer.landed and (verdict.is_whole or name.endswith("appender")):
            yield f"{name} did nothing"
    if not verdict.life.kills:
        yield "the watch was never killed"
    if not verdict.is_whole:
        if not sum((table.kinds for table in verdict.tables.values()), Counter[str]())["compact"]:
            yield "the watch compacted nothing"
        return
    kinds = sum((table.kinds for table in verdict.tables.values()), Counter[str]())
    yield from (f"the watch made no commit of kind {kind}" for kind in NEEDED_KINDS if not kinds[kind])
    if not any(table.files_deleted for table in verdict.tables.values()):
        yield "the watch deleted no file"
    memory = verdict.memory
    if memory is None:
        yield "there are too few samples to judge memory"
    else:
        if memory.python_slope_mib > MAX_PYTHON_SLOPE_MIB:
            yield f"Python grew by {memory.python_slope_mib:.2f} MiB a minute"
        if memory.jvm_slope_mib > MAX_JVM_SLOPE_MIB:
            yield f"the JVM grew by {memory.jvm_slope_mib:.2f} MiB a minute"
