"""Set table properties in one commit, with Delta's own validation."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.log.commit_history import find_conflicting_commit
from maintainer.delta.storage.failures.engine_failures import table_errors
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.delta.transaction.commit_fate import commit_once
from maintainer.delta.transaction.requirements import check_same_table
from maintainer.delta.transaction.small_log_files import checksum_taken_over, write_derived_checksum
from maintainer.engine.protocols import BeforeCommit
from maintainer.errors import CommitConflict, CommitNotLanded, TableError
from maintainer.model.plan.steps import SetPropertiesStep
from maintainer.model.run.receipts import CommitReceipt
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import TableFacts

MAX_ATTEMPTS = 3


def set_properties(
    jvm: DeltaJvm, facts: TableFacts, step: SetPropertiesStep, stamp: CommitStamp, before_commit: BeforeCommit
) -> CommitReceipt:
    """Set the step's properties; values are passed as values, no SQL is built.

    A property that another writer has set to the same value does no harm. A property that differs from what the plan
    saw was changed on purpose, and we yield.

    Raises:
        CommitConflict: C701, the table was replaced, or a property is no longer as the plan saw it.
        TableError: T418, Delta refuses a property or its value.
        CommitNotLanded: C702.
        CommitUnknown: C703.
    """
    started = time.monotonic()
    where = facts.ref.identifier
    with table_errors(where):
        log = jvm.log_at(facts.location)
        storage = TableStorage(jvm, log)
        read_version = _planned_head(jvm, log, storage, facts, step)
    before_commit(read_version, None)  # the caller's: what it raises says nothing about the table
    attempts = 0
    while True:
        attempts += 1
        with table_errors(where):  # once more: another writer may have set one while the caller wrote its intent
            read_version = _planned_head(jvm, log, storage, facts, step)
        try:
            with table_errors(where), refused_properties(), checksum_taken_over(jvm, storage):
                version = commit_once(
                    jvm, storage, stamp, where, lambda: _change(jvm, facts.location, step), after_version=read_version
                )
            write_derived_checksum(jvm, storage, jvm.log_at(facts.location), version)
            break
        except CommitConflict:
            if attempts >= MAX_ATTEMPTS:
                raise
    return CommitReceipt(
        version=version, read_version=read_version, attempts=attempts, duration_seconds=time.monotonic() - started
    )


def _planned_head(
    jvm: DeltaJvm, log: JavaObject, storage: TableStorage, facts: TableFacts, step: SetPropertiesStep
) -> int:
    """Return the head's version, if it is the planned table with the properties as planned."""
    snapshot = jvm.update(log)
    check_same_table(jvm, storage, facts, snapshot)
    try:
        check_as_planned(jvm.metadata(snapshot)["configuration"], step, facts.ref.identifier)
    except CommitConflict as conflict:
        other_commit = find_conflicting_commit(storage, (), after_version=facts.version)
        conflict.what += f" ({other_commit})" if other_commit else ""
        raise
    return int(snapshot.version())


@contextmanager
def refused_properties() -> Iterator[None]:
    """Raise T418 where Delta refuses the properties that the block commits."""
    try:
        yield
    except CommitNotLanded as error:
        if not error.is_refusal:
            raise
        what, help = "Delta refuses the table properties", "correct the value in the policy"
        raise TableError(what, code="T418", where=error.where, found=error.found, help=help) from error


def _change(jvm: DeltaJvm, location: str, step: SetPropertiesStep) -> None:
    if step.after:
        jvm.set_properties(location, dict(step.after))
    else:
        jvm.unset_properties(location, step.unset)


def check_as_planned(configuration: Mapping[str, str], step: SetPropertiesStep, where: str) -> None:
    """Raise if a property is neither as the plan saw it nor as the step wants it: another writer changed it.

    Raises:
        CommitConflict: C701.
    """
    target_values = dict(step.after)
    for key, planned in step.before:
        value = configuration.get(key)
        if value not in (planned, target_values.get(key)):
            raise CommitConflict(
                f"another writer won: the property {key} was changed since it was planned",
                where=where,
                found=str(value),
                allowed=str(planned),
                help="plan again",
            )
