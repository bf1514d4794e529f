"""Dagster: one op that applies, and says in its metadata what came of it. Needs `maintainer[spark]` beside dagster."""

from __future__ import annotations

import dagster


@dagster.op
def maintain(context: dagster.OpExecutionContext) -> None:
    """Plan and apply every table that is tagged nightly; a failed table fails the op after all others ran."""
    from maintainer import Project

    result = Project.load("/opt/lake-policies", env="prod").apply(
        select=["tag:nightly"], jobs=2, timeout_seconds=18_000
    )
    context.add_output_metadata({"run": result.outcome.run_id, "tables": len(result.outcome.tables)})
    result.raise_for_status()


@dagster.job
def lake_maintenance() -> None:
    """The nightly job."""
    maintain()


nightly = dagster.ScheduleDefinition(job=lake_maintenance, cron_schedule="0 22 * * *")
