"""Airflow: a nightly run over the fleet, one task, in the worker's own Python. Needs `maintainer[spark]` there."""

from __future__ import annotations

import datetime

from airflow.sdk import dag, task

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


@dag(schedule="0 22 * * *", start_date=START, catchup=False, max_active_runs=1)
def lake_maintenance() -> None:
    """Plan and apply every table that is tagged nightly; a failed table fails the task after all others ran."""

    @task(retries=0)
    def apply() -> dict[str, int]:
        from maintainer import Project

        result = Project.load("/opt/lake-policies", env="prod").apply(select=["tag:nightly"], jobs=2)
        result.raise_for_status()
        return {table.ref.identifier: len(table.steps) for table in result.outcome.tables}

    apply()


lake_maintenance()
