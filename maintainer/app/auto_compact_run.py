"""Run one attempt of auto compaction, on a thread and in a session made for it."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from maintainer.engine.protocols import Engine
from maintainer.errors import CommitConflict, Interrupted, MaintainerError, TableError, TableHot
from maintainer.execution.table.commit_attempt import check_no_update
from maintainer.execution.table.rewrite_metrics import rewrite_metrics
from maintainer.model.plan.plan import TablePlan, as_problem
from maintainer.model.plan.steps import Batch, CompactStep
from maintainer.model.run.auto_compaction import (
    SESSION_ENABLED,
    SESSION_LAST_COMMIT,
    STEP_KIND,
    AutoCompactResult,
    AutoCompactSettings,
    AutoCompactStatus,
    AutoCompactSwitch,
    SwitchSource,
    switch_of,
)
from maintainer.model.run.receipts import CommitReceipt, Proof
from maintainer.model.table.commit_records import CommitStamp, CommitsWanted
from maintainer.model.table.table_facts import PartitionValues, TableFacts, TableRef
from maintainer.planning.auto_compact_plan import AutoCompactArguments, plan_auto_compact, settings_of
from maintainer.planning.budget.other_writers import LOOK_BACK_MS, MAX_COMMITS, own_rewrites_of

if TYPE_CHECKING:
    from maintainer.delta.engine.table_engine import DeltaTableEngine
    from maintainer.delta.spark.spark_session import SparkSession


MAX_OWN_VERSIONS = 1000
"""So many commits of the callers are remembered, over all tables: the newest."""

_running: set[str] = set()
_own_versions: deque[tuple[str, int]] = deque(maxlen=MAX_OWN_VERSIONS)
_running_lock = threading.Lock()


@dataclass(slots=True)
class AttemptControl:
    """Ends an attempt: the thread that waits for it cancels, the thread that works asks before each commit.

    ``engine`` is there once the attempt has one.
    """

    engine: Engine | None = None
    _cancelled: threading.Event = field(default_factory=threading.Event)

    def cancel(self, group: str) -> None:
        """Allow no more commits, and cancel what runs now; call it again for what starts a moment later."""
        self._cancelled.set()
        if self.engine is not None:
            self.engine.cancel(group)

    def check(self) -> None:
        """Raise if the attempt was cancelled: its caller has gone on, and must not meet a commit later.

        Raises:
            Interrupted: C710.
        """
        if self._cancelled.is_set():
            raise Interrupted("cancelled before the commit", help="call it again with a longer `timeout_seconds`")


@dataclass(frozen=True, slots=True)
class HookRequest:
    """What the writer asked for. ``enabled`` None leaves it to session and table."""

    spark: SparkSession
    ref: TableRef
    group: str
    enabled: bool | None
    arguments: AutoCompactArguments
    control: AttemptControl = field(default_factory=AttemptControl)


def run_hook(request: HookRequest) -> AutoCompactResult:
    """Decide and, if it is worth it, compact.

    Raises:
        MaintainerError: It did not work.
    """
    from maintainer.delta.engine.table_engine import DeltaEngine
    from maintainer.delta.log.commit_history import properties_now
    from maintainer.delta.log.table_place import StoragePlaces
    from maintainer.delta.spark.spark_session import lend_session

    name = request.ref.identifier
    # The caller's own setting decides, and our sessions must not have it: so it is read here.
    session = request.spark.conf.get(SESSION_ENABLED, None)
    if request.enabled is False or (request.enabled is None and (session or "").strip().lower() == "false"):
        source = SwitchSource.ARGUMENT if request.enabled is False else SwitchSource.SESSION
        return _disabled(name, AutoCompactSwitch(False, source))
    with ExitStack() as stack:
        request.control.engine = made = DeltaEngine(stack.enter_context(lend_session(request.spark)))
        engine = stack.enter_context(made.worker(request.group))
        switch = AutoCompactSwitch(True, SwitchSource.ARGUMENT)
        properties = None if request.enabled else properties_now(engine.jvm, request.ref)
        if properties is not None:  # else the caller decided, or there is no such table: reading it says so
            try:
                switch = switch_of(session, properties)
            except ValueError as error:
                return AutoCompactResult(AutoCompactStatus.FAILED, name, str(error))
            if not switch.enabled:
                return _disabled(name, switch)
        facts = engine.reader.facts(request.ref)
        place = StoragePlaces().place_at(facts.location) or facts.location
        own_versions = _versions_of_callers(
            f"{facts.table_id}@{place}", request.spark.conf.get(SESSION_LAST_COMMIT, None)
        )
        result = AutoCompactResult(AutoCompactStatus.NOT_QUALIFIED, name, "", switch)
        with _alone(place) as alone:
            if not alone:
                return replace(result, reason="another auto compaction of this table is running in this process")
            try:
                settings = settings_of(request.arguments, facts, lambda key: request.spark.conf.get(key, None))
            except ValueError as error:
                return replace(result, status=AutoCompactStatus.FAILED, reason=str(error))
            return _Attempt(request, engine, facts, settings, own_versions).run(replace(result, settings=settings))


def _disabled(name: str, switch: AutoCompactSwitch) -> AutoCompactResult:
    return AutoCompactResult(AutoCompactStatus.DISABLED, name, f"auto compaction is {switch.text}", switch)


@contextmanager
def _alone(place: str) -> Iterator[bool]:
    """Hold the table for this attempt; False while another attempt of this process has it."""
    with _running_lock:
        free = place not in _running
        if free:
            _running.add(place)
    try:
        yield free
    finally:
        if free:
            with _running_lock:
                _running.discard(place)


def _versions_of_callers(table: str, last_commit: str | None) -> frozenset[int]:
    """Versions that callers of this process committed right before they called: their own updates are no danger.

    Delta notes the version and not the table: a session that wrote another table in between may name a version of
    somebody else's.
    """
    with _running_lock:
        if last_commit is not None and last_commit.isdecimal():
            _own_versions.append((table, int(last_commit)))
        return frozenset(version for written, version in _own_versions if written == table)


@dataclass(slots=True)
class _Attempt:
    """An attempt that nothing keeps from being made. ``own_versions`` are those of callers of this process."""

    request: HookRequest
    engine: DeltaTableEngine
    facts: TableFacts
    settings: AutoCompactSettings
    own_versions: frozenset[int]
    started_at_ms: int = field(default_factory=lambda: int(time.time() * 1000))

    def run(self, result: AutoCompactResult) -> AutoCompactResult:
        """Decide and compact; ``result`` is what is known so far."""
        from maintainer.delta.log.commit_history import partitions_written

        modified_only = self.settings.modified_partitions_only
        written = partitions_written(self.engine.jvm, self.facts) if modified_only else None
        try:
            decision = plan_auto_compact(self.facts, self.settings, written, now_ms=self.started_at_ms)
            if decision.step is not None:  # only now: a look at the log costs the writer time
                self._look_at_updates()
                decision = plan_auto_compact(self.facts, self.settings, written, now_ms=self.started_at_ms)
        except TableError as error:
            # A table that cannot be maintained is not a failure of this attempt.
            return replace(result, reason=error.what, error_code=error.code)
        result = replace(result, reason=decision.reason, partitions=decision.partitions)
        if decision.step is not None:
            return self._compact(decision.step, result)
        return replace(result, error_code=TableHot.default_code) if decision.hot else result

    def _look_at_updates(self) -> None:
        """Take in what others updated lately, and our own rewrites where they update the table at all.

        A stream that only appends calls for each batch, and its log seldom reaches back a week: it never rests.
        """
        quiet_seconds, now_ms, facts = self.settings.quiet_after_updates_seconds, self.started_at_ms, self.facts
        if not quiet_seconds:
            return
        reader, own_versions = self.engine.reader, self.own_versions
        updates = reader.updates(facts, since_ms=now_ms - quiet_seconds * 1000, after_version=facts.version)
        read = reader.commits(facts.ref, CommitsWanted(MAX_COMMITS, now_ms - LOOK_BACK_MS))
        others = any(
            each.takes_files and each.stamp is None and each.version not in own_versions for each in read.commits
        )
        self.facts = replace(
            facts,
            updates=tuple(update for update in updates if update.version not in own_versions),
            own_rewrites=own_rewrites_of(read, now_ms) if others else None,
        )

    def _compact(self, step: CompactStep, result: AutoCompactResult) -> AutoCompactResult:
        """Rewrite batch by batch; what landed stays, also when a later batch does not."""
        request, facts = self.request, self.facts
        landed: list[tuple[Batch, CommitReceipt]] = []
        result = replace(result, status=AutoCompactStatus.COMPACTED)
        for number, batch in enumerate(step.batches):
            stamp = CommitStamp(request.group, f"{request.ref.identifier}/{STEP_KIND}", number, "")
            look = partial(self._last_look, frozenset(file.partition_values for file in batch.files))
            try:
                request.control.check()
                landed.append((batch, self.engine.writer.rewrite(facts, step, batch, stamp, look)))
            except MaintainerError as error:
                yielded = isinstance(error, CommitConflict)
                status = AutoCompactStatus.YIELDED if yielded else AutoCompactStatus.FAILED
                result = replace(result, status=status, reason=as_problem(error).what, error_code=error.code)
                break
        plan, ended_at_ms = TablePlan(facts.ref, "", ""), int(time.time() * 1000)
        metrics = rewrite_metrics(plan, step, facts, landed, started_at_ms=self.started_at_ms, ended_at_ms=ended_at_ms)
        return replace(result, version=landed[-1][1].version if landed else None, metrics=metrics)

    def _last_look(self, partitions: frozenset[PartitionValues], read_version: int, proof: Proof | None) -> None:
        """Check before each try of the commit whether others updated the partitions, or it is too late.

        There is no run folder to write INTENT into; an attempt that dies leaves at most files that nobody refers to.
        """
        quiet_seconds, now_ms = self.settings.quiet_after_updates_seconds, int(time.time() * 1000)
        check_no_update(
            self.engine.reader, self.facts, partitions,
            quiet_seconds=quiet_seconds, now_ms=now_ms, own_versions=self.own_versions,
        )  # fmt: skip
        self.request.control.check()  # last, for the look itself may take long
