"""Check what has to hold right before an attempt, because the table may have changed since it was planned.

The rules are those of ``planning.recheck.staleness``: another table, schema, partitioning or protocol refuses; missing
files drop their bins; nothing is ever added. Other writers are looked for once more. The window is checked before each
step and commit, so that a long run does not outlast it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timezone
from typing import TypeVar

from maintainer.engine.protocols import TableReader
from maintainer.errors import TableAltered, TableHot, WindowClosed
from maintainer.execution.table.table_worker import TableWorker
from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.steps import SetPropertiesStep, Step
from maintainer.model.table.table_facts import PartitionValues, TableFacts
from maintainer.planning.recheck.staleness import StaleReasons, recheck, refusal
from maintainer.units import format_duration


def check_quiet(
    worker: TableWorker,
    facts: TableFacts,
    partitions: frozenset[PartitionValues],
    *,
    carried_versions: Collection[int] = (),
) -> None:
    """Hold a rewrite back as ``check_no_update`` does, by the plan's quiet time.

    Asked before files are written and again right before each try of the commit. One delete of another writer that was
    carried over holds nothing back; a second one during the same rewrite shows that more may come.

    Raises:
        TableHot: C718.
        TableError: The log cannot be read.
    """
    quiet_seconds, now_ms = worker.plan.quiet_after_updates_seconds, worker.context.clock.now_ms()
    own_versions = carried_versions if len(carried_versions) == 1 else ()
    check_no_update(
        worker.engine.reader, facts, partitions,
        quiet_seconds=quiet_seconds, now_ms=now_ms, own_versions=own_versions,
    )  # fmt: skip


def check_no_update(
    reader: TableReader,
    facts: TableFacts,
    partitions: frozenset[PartitionValues],
    *,
    quiet_seconds: int,
    now_ms: int,
    own_versions: Collection[int] = (),
) -> None:
    """Hold a rewrite back if somebody else updated what it rewrites since it read the table, or a moment before.

    Args:
        reader: Reads the log.
        facts: The table as the rewrite read it.
        partitions: Those of the files that it rewrites.
        quiet_seconds: How long a moment is; 0 never holds back.
        now_ms: The time of the look.
        own_versions: Commits that are the caller's own, or whose deletes it carried over, so that nobody loses.

    Raises:
        TableHot: C718.
        TableError: The log cannot be read.
    """
    if not quiet_seconds:
        return
    updates = reader.updates(facts, since_ms=now_ms - quiet_seconds * 1000, after_version=facts.version)
    update = next(
        (update for update in updates if update.version not in own_versions and update.meets(partitions)), None
    )
    if update is not None:
        ago = format_duration(max(0, now_ms - update.at_ms) // 1000)
        raise TableHot(
            f"hot: {update.operation} by another writer {ago} ago (version {update.version}), "
            f"quietAfterUpdates is {format_duration(quiet_seconds)}",
            where=facts.ref.identifier,
            help="nothing was committed and no new file is left; the next apply rewrites it when its writers are quiet",
        )


AnyStep = TypeVar("AnyStep", bound=Step)


def step_now(plan: TablePlan, step: AnyStep, facts: TableFacts) -> AnyStep | None:
    """Return the part of the step that still holds; None when nothing of it is left.

    Args:
        plan: The table's plan.
        step: One of its steps, or a part of one (a single batch).
        facts: The table now.

    Raises:
        TableAltered: A403, the table is not the one that was planned for; all differences at once.
        Refused: A403, it has lost versions: no writer of Delta's does that.
    """
    # Properties that the plan itself sets are no difference, so these steps come along; the others cost time.
    own: list[Step] = [planned for planned in plan.steps if isinstance(planned, SetPropertiesStep) and planned != step]
    now = recheck(replace(plan, steps=(*own, step)), facts, plan.policy_digest)
    if isinstance(now, StaleReasons):
        observed = plan.observed
        if observed is not None and facts.table_id == observed.table_id and facts.version < observed.version:
            raise refusal((now,))
        raise TableAltered(
            "the table was altered after it was planned",
            where=plan.ref.identifier,
            found="; ".join(now.reasons),
            help="nothing more of this step is committed; the next apply plans the table as it is now",
        )
    return next(
        (current for current in now.steps if isinstance(current, type(step)) and current.kind == step.kind), None
    )


def check_window(worker: TableWorker) -> None:
    """End here if the window in which the table was planned has closed.

    Raises:
        WindowClosed: C716; what is left is found again by the next plan.
    """
    closes = worker.plan.window_closes_ms
    if closes is not None and worker.context.clock.now_ms() >= closes:
        at = datetime.fromtimestamp(closes / 1000, tz=timezone.utc)
        raise WindowClosed(
            f"the window closed at {at:%Y-%m-%d %H:%M} UTC",
            where=worker.plan.ref.identifier,
            help="the rest is planned again in the next window; `--ignore-window` does it now",
        )
