"""Writes one batch's bins as new files and proves them equal to what was read, before anything is visible.

The way of Delta's OptimizeExecutor: exactly the planned AddFiles are read (deletion vectors and column mapping
applied by Delta), one Spark job writes each bin, up to ``max_threads`` at once. Then one job reads the source
files and the written files again from storage and compares counts and fingerprints.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from maintainer.delta.error_classes import as_write_error
from maintainer.delta.fingerprint import combine, hashed_columns, sum_expressions
from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.live_files import LiveFiles, LoadedFiles
from maintainer.delta.storage import TableStorage
from maintainer.delta.winners import find_winner
from maintainer.errors import CommitConflict, CommitNotLanded, EnvironmentUnfit, VerificationFailed
from maintainer.model.closed import assert_never
from maintainer.model.outcome import Proof
from maintainer.model.steps import Batch, Bin, CompactStep, RewriteStep, ZOrderStep
from maintainer.model.table import TableFacts

UNSAFE_READS = ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles")
"""With either one on, a rewrite loses the rows of files it cannot read, and re-reading them hides it."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """One file written and not yet committed: its ``add`` action as Delta made it, and the tags it will carry."""

    add: dict[str, Any]
    tags: tuple[tuple[str, str], ...] = ()

    @property
    def path(self) -> str:
        """Path as in the log: relative to the root, percent-encoded."""
        return str(self.add["path"])

    @property
    def size_bytes(self) -> int:
        """Size on storage."""
        return int(self.add["size"])

    @property
    def records(self) -> int | None:
        """Rows by its statistics, None without statistics."""
        stats = json.loads(self.add.get("stats") or "{}")
        return None if stats.get("numRecords") is None else int(stats["numRecords"])

    def to_proof_line(self) -> str:
        """The action for reading the file before it is committed.

        Delta gives row ids at commit and refuses to read a file without; the ids that count are in the file, and a
        row that lacks one would get an id from this base and not pass the proof.
        """
        return json.dumps({"add": {"baseRowId": 0, "defaultRowCommitVersion": 0, **self.add}}, ensure_ascii=False)

    def to_line(self) -> str:
        """The action for the log: a rewrite changes no data."""
        tags = {**(self.add.get("tags") or {}), **dict(self.tags)}
        add = {**self.add, "dataChange": False, **({"tags": tags} if tags else {})}
        return json.dumps({"add": add}, ensure_ascii=False)


@dataclass(slots=True)
class RewriteTimings:
    """Seconds of each part, for benchmarks."""

    snapshot: float = 0.0
    write: float = 0.0
    proof: float = 0.0
    commit: float = 0.0


@dataclass(slots=True)
class RewriteJob:
    """One batch on its way from a snapshot to a proof. Used once, from one thread.

    ``between_write_and_proof`` is called with the written files before the proof reads them: the place where
    tests plant faults. It is None in production.
    """

    jvm: DeltaJvm
    facts: TableFacts
    step: RewriteStep
    batch: Batch
    group: str
    live: LiveFiles
    between_write_and_proof: Callable[[TableStorage, list[WrittenFile]], None] | None = None
    timings: RewriteTimings = field(default_factory=RewriteTimings)
    written: list[WrittenFile] = field(default_factory=list)
    log: JavaObject = None
    snapshot: JavaObject = None
    txn: JavaObject = None
    sources: list[JavaObject] = field(default_factory=list)

    @property
    def where(self) -> str:
        """The table, for messages."""
        return self.facts.ref.identifier

    @property
    def storage(self) -> TableStorage:
        """The table's storage."""
        return TableStorage(self.jvm, self.log)

    def open(self) -> None:
        """Read the newest snapshot, match every file of the batch to a live AddFile and start the transaction.

        Raises:
            EnvironmentUnfit: E606, the session would lose the rows of unreadable files.
            CommitConflict: C701, the table was replaced or a file of the batch is no longer live.
        """
        started = time.monotonic()
        for key in UNSAFE_READS:
            if str(self.jvm.spark.conf.get(key, "false")).lower() == "true":
                raise EnvironmentUnfit(
                    f"{key} is on: a rewrite would lose the rows of files that cannot be read",
                    code="E606",
                    where=self.where,
                    help=f"set {key}=false",
                )
        try:
            self._open()
        except Exception as error:
            raise as_write_error(error, self.where, "reading the table") from error
        self.timings.snapshot = time.monotonic() - started

    def _open(self) -> None:
        self.log = self.jvm.log_at(self.facts.location)
        self.snapshot = self.jvm.update(self.log)
        check_same_table(self.jvm, self.facts, self.snapshot)
        live = self.live.of(self.log, self.snapshot)
        self._check_all_live(live)
        self.sources = [live.handle(one.key) for one in self.batch.files]
        self.txn = self.jvm.start_transaction(self.log, self.snapshot)
        self.jvm.track_read(self.txn, self.jvm.seq(self.sources))

    def _check_all_live(self, live: LoadedFiles) -> None:
        gone = [one for one in self.batch.files if one.key not in live]
        if gone:
            winner = find_winner(self.storage, {one.key for one in gone}, after_version=self.facts.version)
            raise CommitConflict(
                f"{len(gone)} of {len(self.batch.files)} files are no longer live as planned: another writer won"
                + (f" ({winner})" if winner else ""),
                where=self.where,
                found=f"{gone[0].path} was removed or has other deleted rows now",
                help="plan again; the rest will be done then",
            )

    def write(self) -> None:
        """Write all bins. On any failure what other bins wrote is removed and the failure is raised.

        Raises:
            CommitNotLanded: C702, a bin could not be written.
            EnvironmentUnfit: E631, storage is full.
            TableError: T405, permission denied.
        """
        started = time.monotonic()
        by_key = {one.key: add for one, add in zip(self.batch.files, self.sources, strict=True)}
        bins = [(number, one) for number, one in enumerate(self.batch.bins) if one.live_records != 0]
        failures: list[BaseException] = []

        def run(numbered: tuple[int, Bin]) -> list[WrittenFile]:
            number, one = numbered
            if failures:
                return []
            try:
                self.jvm.enter_thread(self.group, f"{self.where}: bin {number + 1} of {len(self.batch.bins)}")
                return self._write_bin(one, [by_key[file.key] for file in one.files])
            except BaseException as error:
                failures.append(error)
                return []

        if len(bins) == 1:
            self.written = run(bins[0])
        elif bins:
            workers = max(1, min(self.step.max_threads, len(bins)))
            with ThreadPoolExecutor(workers, thread_name_prefix="maintainer-bin") as pool:
                self.written = [file for files in pool.map(run, bins) for file in files]
        self.timings.write = time.monotonic() - started
        if failures:
            self.discard()
            raise as_write_error(failures[0], self.where, "writing the new files") from failures[0]

    def _write_bin(self, one: Bin, sources: list[JavaObject]) -> list[WrittenFile]:
        frame = self.jvm.read_files(self.log, self.snapshot, self.jvm.seq(sources), "Optimize")
        frame = self.jvm.with_row_tracking(frame, self.snapshot)
        match self.step:
            case CompactStep():
                frame = frame.coalesce(1)
            case ZOrderStep(columns=columns, max_file_size_bytes=size):
                frame = self.jvm.clustered(frame, max(1, one.size_bytes // size), columns)
            case _:
                assert_never(self.step)
        found = []
        for line in self.jvm.write_files(self.txn, frame):
            action = json.loads(line)
            if set(action) != {"add"}:
                raise CommitNotLanded(
                    "Delta's writer returned something else than added files",
                    where=self.where,
                    found=line[:200],
                    help="nothing was committed; `maintainer doctor` looks for a foreign build of Delta",
                )
            found.append(WrittenFile(action["add"], self.step.file_tags))
        return found

    def prove(self) -> Proof:
        """Read sources and written files again from storage and compare; removes what was written on a mismatch.

        Raises:
            VerificationFailed: V501 with both figures.
            CommitNotLanded: C702, the proof could not be made.
        """
        started = time.monotonic()
        try:
            if self.between_write_and_proof is not None:
                self.between_write_and_proof(self.storage, self.written)
            self.jvm.enter_thread(self.group, f"{self.where}: proof of {len(self.written)} files")
            proof = self._measure(started)
        except Exception as error:
            self.discard()
            raise as_write_error(error, self.where, "proving the new files") from error
        self.timings.proof = time.monotonic() - started
        counts = [one.records for one in self.written]
        in_new_log = None if None in counts else sum(count or 0 for count in counts)
        if proof.holds and in_new_log in (None, proof.written.rows):
            return proof
        self.discard()
        raise VerificationFailed(
            "what was written does not equal what was read; nothing was committed and the new files were removed",
            where=f"{self.where}@{int(self.snapshot.version())}",
            found=f"written: {_figures(proof.written.rows, proof.written.sums)}, statistics say {in_new_log} rows",
            allowed=f"read: {_figures(proof.read.rows, proof.read.sums)}, the log says {proof.rows_in_log} rows",
            help="look for failing disks, memory or a foreign Delta build before the table is maintained again",
        )

    def _measure(self, started: float) -> Proof:
        extra: tuple[str, ...] = ()
        if self.jvm.metadata(self.snapshot)["configuration"].get("delta.enableRowTracking") == "true":
            extra = ("_metadata.row_id", "_metadata.row_commit_version")
        source = self.jvm.read_files(self.log, self.snapshot, self.jvm.seq(self.sources), "Verify")
        columns = hashed_columns(json.loads(source.schema.json()), extra)
        names = tuple(f"h{number}" for number in range(len(columns.hashes)))
        selected = [f"{text} AS {name}" for text, name in zip(columns.hashes, names, strict=True)]
        sides = source.selectExpr("0 AS side", *selected)
        if self.written:
            adds = self.jvm.seq(self.jvm.action(one.to_proof_line()) for one in self.written)
            target = self.jvm.read_files(self.log, self.snapshot, adds, "Verify")
            sides = sides.unionAll(target.selectExpr("1 AS side", *selected))
        from pyspark.sql import functions as F

        totals = [F.expr(text) for text in ("count(1) AS n", *sum_expressions(names))]
        # Adaptive execution would make two jobs of it, and there is nothing to adapt: it ends in two rows.
        with self.jvm.setting("spark.sql.adaptive.enabled", "false"):
            rows = {row["side"]: tuple(row)[1:] for row in sides.groupBy("side").agg(*totals).collect()}
        empty = (0,) * (1 + 3 * len(names))
        read, written = (combine(one[0], one[1:]) for one in (rows.get(0, empty), rows.get(1, empty)))
        in_log = [one.live_records for one in self.batch.files]
        return Proof(
            read=read,
            written=written,
            rows_in_log=None if None in in_log else sum(count or 0 for count in in_log),
            uncovered_columns=columns.uncovered,
            duration_seconds=time.monotonic() - started,
        )

    def discard(self) -> None:
        """Remove what was written. Only for files that certainly are not, and never will be, committed."""
        storage = self.storage
        for one in self.written:
            uri = storage.uri(one.path)
            if storage.is_below_root(uri):
                try:
                    storage.delete(uri)
                except Exception:
                    # An orphan is harmless and is found by listing; the failure that led here must not be hidden.
                    continue


def _figures(rows: int, sums: tuple[int, ...]) -> str:
    return f"{rows} rows, fingerprint {'/'.join(f'{one:x}' for one in sums)}"


def check_same_table(jvm: DeltaJvm, facts: TableFacts, snapshot: JavaObject) -> None:
    """Refuse if the table at this place is not the one that was planned.

    Raises:
        CommitConflict: C701, another table id, or no table at all.
    """
    if snapshot.version() < 0:
        raise CommitConflict(
            "the table was dropped since it was planned",
            where=facts.ref.identifier,
            help="plan again, or remove its policy",
        )
    found = jvm.metadata(snapshot)["id"]
    if found != facts.table_id:
        raise CommitConflict(
            "the table was dropped and created again since it was planned",
            where=facts.ref.identifier,
            found=f"table id {found}",
            allowed=f"table id {facts.table_id}",
            help="plan again",
        )
