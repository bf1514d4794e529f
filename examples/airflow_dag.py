"""Airflow: a nightly run over the fleet, one task. `maintainer[spark]` is installed in /opt/maintainer on the workers.

It is a command and no code in the worker's Python: Airflow and Spark need not agree about one environment.
"""

from __future__ import annotations

import datetime

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

with DAG(
    dag_id="lake_maintenance",
    schedule="0 22 * * *",
    start_date=datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
    catchup=False,
    max_active_runs=1,
):
    BashOperator(
        task_id="apply",
        bash_command="maintainer --project /opt/lake-policies --env prod apply --yes -s tag:nightly --timeout 5h",
        env={"PATH": "/opt/maintainer/bin:/usr/bin:/bin"},
        append_env=True,
        retries=0,  # what failed is taken up by the next run
        execution_timeout=datetime.timedelta(hours=5, minutes=30),
    )
