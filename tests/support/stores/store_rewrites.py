"""Work on tables of a store in a process with a session that reaches it: what ``CommandHost.call`` calls."""

from __future__ import annotations

import time
import urllib.request
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from maintainer.delta.engine.table_engine import DeltaEngine
from maintainer.delta.spark.spark_session import SessionLease
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.delta.transaction import small_log_files
from maintainer.delta.vacuum import second_reader, vacuum_deletion
from maintainer.delta.verify.commit_proof import DeltaCommitProver
from maintainer.errors import MaintainerError
from maintainer.model.plan.lanes import Lane, LaneChoice
from maintainer.model.plan.plan import Checks
from maintainer.model.plan.steps import Batch, SetPropertiesStep, VacuumStep
from maintainer.model.run.receipts import Proof
from maintainer.model.table.table_facts import TableRef
from maintainer.model.table.table_features import keeps_row_ids
from maintainer.verification.commit_checks_after import GreatExpectationsVerifier
from tests.support.tables.delta_tables import compaction, forget_logs, removed_files, stamp
from tests.support.tables.vacuum_cases import forget_add

BEGUN, INTENT, COMMITTED, CHECKED = "mark-begun", "mark-intent", "mark-committed", "mark-checked"
"""What the server is asked for at these moments, so that its list of requests shows where they were."""

VERIFY = "spark.databricks.delta.incremental.commit.verify"
"""With it Delta builds the state before and after each commit, and compares it with the checksums."""


def rewrite(lease: SessionLease, location: str, server_url: str, validated: bool) -> dict[str, Any]:
    """Compact a table in one batch, and check the commit; returns the versions, the verdict, jobs and rows."""
    with DeltaEngine(lease).worker("store") as engine:
        settings = dict(engine.jvm.spark.conf.getAll)
        facts = engine.reader.facts(TableRef(location))
        step, batch = compaction(facts)
        lane = LaneChoice(Lane.SPARK if keeps_row_ids(facts.property_map) else Lane.LOCAL, "")
        batch = Batch(tuple(replace(bin_, lane=lane) for bin_ in batch.bins))
        step = replace(step, batches=(batch,))
        forget_logs(engine.jvm.spark)

        def intent(read_version: int, proof: Proof | None) -> None:
            _mark(server_url, INTENT)

        with pytest.MonkeyPatch.context() as patch, engine.jvm.setting(VERIFY, str(validated).lower()):
            # No test can make an object older.
            patch.setattr(small_log_files, "WRITERS_OWN_SECONDS", 0)
            receipt = engine.writer.rewrite(facts, step, batch, stamp(), intent)
        _mark(server_url, COMMITTED)
        jobs = _num_jobs(engine.jvm.spark)
        checked = GreatExpectationsVerifier().after_rewrite(engine.versions, facts, batch, receipt, Checks())
        _mark(server_url, CHECKED)
        return {
            "version": receipt.version, "verdict": checked.verdict.value, "rows": checked.rows_after,
            "jobs_of_checks": _num_jobs(engine.jvm.spark) - jobs,
            "settings": sorted(key for key, _ in settings.items() ^ dict(engine.jvm.spark.conf.getAll).items()),
        }  # fmt: skip


def alter(lease: SessionLease, location: str, key: str, value: str) -> int:
    """Set a property of a table whose log has no checksum file; returns the version."""
    with DeltaEngine(lease).worker("store") as engine, pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_log_files, "WRITERS_OWN_SECONDS", 0)
        facts, step = engine.reader.facts(TableRef(location)), SetPropertiesStep(((key, None),), ((key, value),), ())
        forget_logs(engine.jvm.spark)
        return engine.writer.set_properties(facts, step, stamp("t/properties"), lambda *_: None).version


def vacuum(
    lease: SessionLease, location: str, server_url: str, forgotten: str | None, overwritten: int | None
) -> dict[str, Any]:
    """Delete what the log of a table removed; returns how many files went, or the error.

    Our replay misses the adds of ``forgotten``; the commit ``overwritten`` gets another content of the same size after
    the last look at the log.
    """
    with DeltaEngine(lease).worker("store") as engine:
        facts = engine.reader.facts(TableRef(location))
        step = VacuumStep(removed_files(engine, facts), int(time.time() * 1000), 0, "vacuum.retention", ())

        def between(read_version: int, proof: Proof | None) -> None:
            if overwritten is not None:
                storage = TableStorage(engine.jvm, facts.location)
                uri = storage.commit_uri(overwritten)
                content = storage.files.read(uri)
                storage.files.delete(uri)
                storage.files.write(uri, content.replace(b"WRITE", b"OTHER"))

        with pytest.MonkeyPatch.context() as patch:
            # No test can make an object older.
            patch.setattr(small_log_files, "WRITERS_OWN_SECONDS", 0)
            if forgotten is not None:
                forget_add(patch, forgotten)
                engine.reader.forget(facts.location)
                facts = engine.reader.facts(facts.ref)
            forget_logs(engine.jvm.spark)
            check = second_reader.check_second_reading

            def marked(*arguments: Any) -> None:
                _mark(server_url, INTENT)
                try:
                    check(*arguments)
                finally:
                    _mark(server_url, COMMITTED)

            patch.setattr(vacuum_deletion, "check_second_reading", marked)
            _mark(server_url, BEGUN)
            try:
                receipt = engine.writer.vacuum(facts, step, stamp("t/vacuum"), between)
                return {"deleted": receipt.num_files_deleted, "code": None, "found": None}
            except MaintainerError as error:
                return {"deleted": 0, "code": error.code, "found": error.found}
            finally:
                _mark(server_url, CHECKED)


def prove(lease: SessionLease, location: str, version: int) -> dict[str, Any]:
    """Verify a commit that landed; returns what each check found, and how many Spark jobs that took."""
    with DeltaEngine(lease).worker("store") as engine:
        facts, jobs = engine.reader.facts(TableRef(location)), _num_jobs(engine.jvm.spark)
        checks = DeltaCommitProver(engine.jvm).prove(facts, version).checks
        return {
            "jobs": _num_jobs(engine.jvm.spark) - jobs,
            "found": sorted({(check.level, check.result.value) for check in checks}),
        }


def validate(lease: SessionLease, location: str, versions: list[int]) -> list[bool]:
    """Let Delta build the state of versions and compare it with their checksum files; it raises where they differ."""
    with DeltaEngine(lease).worker("store") as engine:
        forget_logs(engine.jvm.spark)
        log = engine.jvm.log_at(location)
        nothing = engine.jvm.string_map({})
        snapshots = [engine.jvm.snapshot_at(log, version) for version in versions]
        return [snapshot.checksumOpt().isDefined() and snapshot.validateChecksum(nothing) for snapshot in snapshots]


def stream_appends(lease: SessionLease, source: str, target: str, checkpoint: str, ids: list[list[int]]) -> None:
    """Make a table with row tracking and in-commit timestamps, and let a stream append ranges of ids to it."""
    with DeltaEngine(lease).worker("store") as engine:
        spark = engine.jvm.spark
        properties = ("delta.enableRowTracking", "delta.enableInCommitTimestamps")
        texts = ", ".join(f"'{name}' = 'true'" for name in properties)
        spark.sql(f"CREATE TABLE IF NOT EXISTS delta.`{target}` (id BIGINT) USING delta TBLPROPERTIES ({texts})")
        for start, end in ids:
            spark.range(start, end, 1, 2).write.format("delta").mode("append").save(source)
            stream = spark.readStream.format("delta").load(source).writeStream.format("delta")
            stream = stream.option("checkpointLocation", checkpoint).trigger(availableNow=True)
            stream.start(target).awaitTermination()


def _num_jobs(spark: Any) -> int:
    return int(spark.sparkContext._jsc.sc().statusStore().jobsList(None).size())


def _mark(server_url: str, name: str) -> None:
    with suppress(OSError):  # whatever it answers
        urllib.request.urlopen(f"{server_url}/lake/{name}", timeout=60).close()
