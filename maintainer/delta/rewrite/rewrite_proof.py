"""Prove a batch's new files before anything is visible: the actions, the rows, the statistics.

L1, the actions: only the planned files are added and removed (``proof_actions``). L2, the rows: the new files are read
again from storage. Their count and fingerprint must equal those of the source rows, which were taken on their way to
the writer (``spark_lane``) or are read once more (``row_comparison``). L3, the statistics: what goes into the log
must fit the rows of each new file (``statistics_verdict``). L2 and L3 share one Spark job.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any

from maintainer.delta.jvm import JavaObject
from maintainer.delta.log.actions import statistics_in, to_physical
from maintainer.delta.log.schema_names import indexed_schema
from maintainer.delta.log.staged_file import WrittenFile, widened
from maintainer.delta.log.statistics_columns import StatisticsColumn, statistics_columns
from maintainer.delta.proof.proof_actions import Expected, check_adds, check_removes, check_sizes
from maintainer.delta.proof.row_comparison import FileSet, rows_by_file
from maintainer.delta.proof.second_engine.column_values import OtherTypeError
from maintainer.delta.proof.statistics_figures import RowFigures
from maintainer.delta.proof.statistics_verdict import Strictness, judge, unknown_names
from maintainer.delta.rewrite.commit.batch_transaction import begin
from maintainer.delta.rewrite.commit.carried_deletes import CarriedDeletes
from maintainer.delta.rewrite.proof_parts import ProofPart, figures_of_files, lane_uses, parts_of
from maintainer.delta.rewrite.rewrite_job import RewriteJob
from maintainer.errors import FileAbsent, MaintainerError, TableError, VerificationFailed
from maintainer.model.plan.lanes import NOTHING_JUDGED
from maintainer.model.run.progress import Phase
from maintainer.model.run.receipts import Fingerprint, Proof
from maintainer.units import count_of, shortened

COLLECTS_STATISTICS = "spark.databricks.delta.stats.collect"

SHOWN = 5
"""Problems that a message names; the rest is counted."""

_DISTRUST_HELP = "look for failing disks, memory or an unknown Delta build before you maintain the table again"


def prove_rewrite(job: RewriteJob) -> Proof:
    """Prove the actions, rows and statistics of what was written.

    Raises:
        VerificationFailed: V502 the actions, V501 the rows, V506 the statistics.
        TableError: T421, the table's own log is wrong about the files that were read; T408, a file is missing.
        CommitNotLanded: C702, the proof could not be made.
    """
    started = time.monotonic()
    job.meter.begin(Phase.PROVING, job.batch.size_bytes)
    try:
        if job.between_write_and_proof is not None:
            job.between_write_and_proof(job.storage, job.written)
        job.jvm.enter_thread(job.group, f"{job.where}: proof of {len(job.written)} files")
        _prove_adds(job)
        try:
            parts = parts_of(job)
        except OtherTypeError as error:
            raise _wrong(job, "V501", "a new file is not as the table's schema says", str(error)) from error
        for part in parts:
            if not _is_empty(job, part):
                _compare(job, part)
        proof = _joined(job, parts, started)
        _compare_with_log(job, proof, any(part.measured.read.rows for part in parts if _is_empty(job, part)))
        for part in parts:
            _prove_statistics(job, part)
    except Exception as error:
        if isinstance(error, VerificationFailed):
            error.is_shared = not job.jvm.is_tested  # such a build writes the other tables, too
        if isinstance(error, MaintainerError):
            raise
        raise job.failure(error, "proving the new files") from error
    job.timings.proof = time.monotonic() - started
    return proof


def prove_removes(job: RewriteJob, removes: JavaObject) -> None:
    """Check right before the commit that exactly the planned files are in a Java ``List`` of removes.

    Raises:
        VerificationFailed: V502.
    """
    _refuse_actions(job, check_removes(job.jvm.fields_of(removes), job.batch))


def _prove_adds(job: RewriteJob) -> None:
    storage = job.storage
    metadata = job.metadata
    schema = json.loads(metadata["schemaString"])
    live = {file.path for file in job.facts.files}
    expected = Expected(
        batch=job.batch,
        marks=job.marks,
        physical_names={name: to_physical(schema, name) for name in metadata["partitionColumns"]},
        is_live=lambda path: path in live,
        is_below_root=lambda path: storage.is_below_root(storage.uri(path)),
        curve_tags=job.curve_tags,
        vectors=job.carried_deletes.vectors if job.carried_deletes else {},
    )
    problems = check_adds(job.written, expected)

    def size_of(path: str) -> int:
        status = storage.status(storage.uri(path))
        if status is None:
            raise FileAbsent(
                "a new file is gone from storage before it was committed; nothing was committed",
                where=job.where,
                found=path,
                help="another program deletes files in the table's folder; stop it, then run `maintainer apply` again",
            )
        job.stored[path] = status
        return status.size_bytes

    _refuse_actions(job, problems or check_sizes(job.written, size_of))


def _refuse_actions(job: RewriteJob, problems: list[str]) -> None:
    if problems:
        raise _wrong(job, "V502", "the commit would differ from the plan", shortened(problems, SHOWN))


def _joined(job: RewriteJob, parts: list[ProofPart], started: float) -> Proof:
    """Add the parts up. They were compared each by itself: sums of different libraries mean different things."""
    in_log = [file.live_records for file in job.batch.files]
    nothing = Fingerprint(0, (0, 0))
    return Proof(
        read=sum((part.measured.read for part in parts), nothing),
        written=sum((part.measured.written for part in parts), nothing),
        rows_in_log=None if None in in_log else sum(count or 0 for count in in_log),
        uncovered_columns=tuple(dict.fromkeys(name for part in parts for name in part.measured.uncovered_columns)),
        duration_seconds=time.monotonic() - started,
        lanes=lane_uses(job, parts),
        source_statistics=sum(
            [*job.source_findings.values(), *(part.source_findings for part in parts)], NOTHING_JUDGED
        ),
        late_paths=job.late_paths,
    )


def _compare(job: RewriteJob, part: ProofPart) -> None:
    """Compare rows read with rows written.

    Raises:
        VerificationFailed: V501, the rows differ: our copy is wrong.
    """
    read, written = part.measured.read, part.measured.written
    if read != written or part.row_problems:
        found = "\n".join([f"written: {_counted(written.rows, written.sums)}", *part.row_problems])
        allowed = f"read by {part.prover}: {_counted(read.rows, read.sums)}"
        raise _wrong(job, "V501", "the rows written are not the rows read", found, allowed)


def _is_empty(job: RewriteJob, part: ProofPart) -> bool:
    """Whether nothing was written of a part, since the log says that its files have no rows."""
    return not part.written and all(job.batch.bins[number].live_records == 0 for number in part.bins)


def _compare_with_log(job: RewriteJob, proof: Proof, empty_has_rows: bool) -> None:
    """Compare the rows read with what the log counts; ``empty_has_rows``: where that was none, there are some.

    Raises:
        TableError: T421, the rows are the same and the log counts others: the log was wrong before.
    """
    if proof.rows_in_log in (None, proof.read.rows) and not empty_has_rows:
        return
    counted = rows_by_file(job.jvm, job.log, FileSet(begin(job).snapshot, job.sources), job.batch.files)
    wrong = [
        f"{file.path}: the log says {file.live_records:,} rows, it holds {rows:,}"
        for file, rows in zip(job.batch.files, counted, strict=True)
        if file.live_records not in (None, rows)
    ]
    known = [file.live_records for file in job.batch.files if file.live_records is not None]
    raise TableError(
        "the table's log and its files have different row counts; nothing was committed",
        code="T421",
        where=f"{job.where}@{job.read_version}",
        found=shortened(wrong, SHOWN),
        allowed=f"{count_of(sum(known), 'row')} in {count_of(len(known), 'file')}",
        help="a file was damaged or its writer counted wrong: see `maintainer explain T421`",
    )


def _prove_statistics(job: RewriteJob, part: ProofPart) -> None:
    """Check the statistics of every new file against its rows: those in the log, and those in its footer.

    Raises:
        VerificationFailed: V506.
    """
    measured, strictness = part.measured, _strictness(job)
    problems: list[str] = []
    for file, figures in zip(part.written, measured.files, strict=True):
        problems += [f"{file.path}: {text}" for text in figures.hidden]
        job.judged[file.path] = file.add.get("stats"), measured.columns, figures
        if job.carried_deletes is not None and file.bin_number in job.carried_deletes.bins:
            problems += _why_not_as_proven(job.carried_deletes, file)
        problems += _wrong_in(file.add, measured.columns, figures, strictness)
    if problems:
        raise _wrong(job, "V506", "the statistics of new files do not fit their rows", shortened(problems, SHOWN))


def _wrong(job: RewriteJob, code: str, what: str, found: str, allowed: str | None = None) -> VerificationFailed:
    return VerificationFailed(
        f"{what}; nothing was committed and the new files were removed",
        code=code,
        where=f"{job.where}@{job.read_version}",
        found=found,
        allowed=allowed,
        help=_DISTRUST_HELP,
    )


def _strictness(job: RewriteJob) -> Strictness:
    """What is required of the statistics of a rewrite of ours."""
    expected = statistics_columns(indexed_schema(job.metadata), ())
    return Strictness(
        exact=True,
        complete=(job.jvm.session_setting(COLLECTS_STATISTICS) or "true").lower() == "true",
        expected=frozenset(column.physical for column in expected),
    )


def _wrong_in(
    add: Mapping[str, Any], columns: tuple[StatisticsColumn, ...], figures: RowFigures, strictness: Strictness
) -> list[str]:
    """What is wrong with the statistics of one file, as sentences with its path."""
    names = unknown_names(statistics_in(add.get("stats")) or {}, columns)
    wrong = [*judge(add, columns, figures, strictness).wrong]
    return [
        f"{add['path']}: {text}"
        for text in wrong + [f"it has statistics of {name}, which is no column" for name in names]
    ]


def judge_landed(job: RewriteJob, adds: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Judge the statistics that the log has of our files, as before the commit; return what is wrong, as sentences.

    Figures that were measured for other bounds say nothing about these: then the file is read again.
    """
    problems: list[str] = []
    for add in adds:
        if (path := str(add["path"])) not in job.judged:
            continue  # none that we wrote, which is said of it already
        text, columns, figures = job.judged[path]
        try:
            if add.get("stats") != text:
                measured = figures_of_files(job, (WrittenFile(dict(add)),))
                columns, (figures,) = measured.columns, measured.files
            problems += _wrong_in(add, columns, figures, _strictness(job))
        except Exception as error:
            # The commit has landed: what cannot be read now must not turn success into failure.
            problems.append(f"{path}: its statistics are not those that were proven, and cannot be judged: {error}")
    return tuple(problems)


def _why_not_as_proven(deletes: CarriedDeletes, file: WrittenFile) -> list[str]:
    """Compare statistics with those that were proven before rows of the file were deleted: its rows are the same."""
    proven = next(str(before.add["stats"]) for before in deletes.written if before.path == file.path)
    expected = widened(proven) if file.path in deletes.vectors else proven
    return [] if file.add.get("stats") == expected else [f"{file.path}: its statistics are not those that were proven"]


def _counted(rows: int, sums: tuple[int, ...]) -> str:
    return f"{count_of(rows, 'row')}, fingerprint {'/'.join(f'{sum_:x}' for sum_ in sums)}"
