"""Proves a batch's new files equal to what was read, before anything is visible.

One Spark job reads the source files and the written files again from storage and compares counts and fingerprints.
"""

from __future__ import annotations

import json
import time

from maintainer.delta.error_classes import as_write_error
from maintainer.delta.fingerprint import combine, hashed_columns, sum_expressions
from maintainer.delta.rewrite import RewriteJob
from maintainer.errors import VerificationFailed
from maintainer.model.outcome import Proof


def prove_rewrite(job: RewriteJob) -> Proof:
    """Read sources and written files again from storage and compare; removes what was written on a mismatch.

    Raises:
        VerificationFailed: V501 with both figures.
        CommitNotLanded: C702, the proof could not be made.
    """
    started = time.monotonic()
    try:
        if job.between_write_and_proof is not None:
            job.between_write_and_proof(job.storage, job.written)
        job.jvm.enter_thread(job.group, f"{job.where}: proof of {len(job.written)} files")
        proof = _measure(job, started)
    except Exception as error:
        job.discard()
        raise as_write_error(error, job.where, "proving the new files") from error
    job.timings.proof = time.monotonic() - started
    counts = [one.records for one in job.written]
    in_new_log = None if None in counts else sum(count or 0 for count in counts)
    if proof.holds and in_new_log in (None, proof.written.rows):
        return proof
    job.discard()
    raise VerificationFailed(
        "what was written does not equal what was read; nothing was committed and the new files were removed",
        where=f"{job.where}@{int(job.snapshot.version())}",
        found=f"written: {_figures(proof.written.rows, proof.written.sums)}, statistics say {in_new_log} rows",
        allowed=f"read: {_figures(proof.read.rows, proof.read.sums)}, the log says {proof.rows_in_log} rows",
        help="look for failing disks, memory or a foreign Delta build before the table is maintained again",
    )


def _measure(job: RewriteJob, started: float) -> Proof:
    extra: tuple[str, ...] = ()
    if job.jvm.metadata(job.snapshot)["configuration"].get("delta.enableRowTracking") == "true":
        extra = ("_metadata.row_id", "_metadata.row_commit_version")
    source = job.jvm.read_files(job.log, job.snapshot, job.jvm.seq(job.sources), "Verify")
    columns = hashed_columns(json.loads(source.schema.json()), extra)
    names = tuple(f"h{number}" for number in range(len(columns.hashes)))
    selected = [f"{text} AS {name}" for text, name in zip(columns.hashes, names, strict=True)]
    sides = source.selectExpr("0 AS side", *selected)
    if job.written:
        adds = job.jvm.seq(job.jvm.action(one.to_proof_line()) for one in job.written)
        target = job.jvm.read_files(job.log, job.snapshot, adds, "Verify")
        sides = sides.unionAll(target.selectExpr("1 AS side", *selected))
    from pyspark.sql import functions as F

    totals = [F.expr(text) for text in ("count(1) AS n", *sum_expressions(names))]
    # Adaptive execution would make two jobs of it, and there is nothing to adapt: it ends in two rows.
    with job.jvm.setting("spark.sql.adaptive.enabled", "false"):
        rows = {row["side"]: tuple(row)[1:] for row in sides.groupBy("side").agg(*totals).collect()}
    empty = (0,) * (1 + 3 * len(names))
    read, written = (combine(one[0], one[1:]) for one in (rows.get(0, empty), rows.get(1, empty)))
    in_log = [one.live_records for one in job.batch.files]
    return Proof(
        read=read,
        written=written,
        rows_in_log=None if None in in_log else sum(count or 0 for count in in_log),
        uncovered_columns=columns.uncovered,
        duration_seconds=time.monotonic() - started,
    )


def _figures(rows: int, sums: tuple[int, ...]) -> str:
    return f"{rows} rows, fingerprint {'/'.join(f'{one:x}' for one in sums)}"
