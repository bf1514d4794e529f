"""The table of expectations says what the installed Great Expectations says (which takes seconds to import)."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.support.product import EXPECTATIONS, NOT_FOR_POLICIES, REFUSED_EXPECTATIONS, WITHOUT_SPARK

pytestmark = pytest.mark.nightly

PROBE = """
import json
from great_expectations.expectations import registry
names = registry.list_registered_expectation_implementations()
print(json.dumps({
    name: {key: field.required for key, field in registry.get_expectation_impl(name).__fields__.items()}
    for name in names
}))
"""


SPARK_PROBE = """
import json
import great_expectations.expectations
from great_expectations.expectations import registry

def on_spark(name):
    found = registry.get_expectation_impl(name)
    if hasattr(found, "_validate_spark"):
        return True
    metrics = list(getattr(found, "metric_dependencies", ()))
    if getattr(found, "map_metric", None):
        metrics.append(f"{found.map_metric}.condition")
    known = registry._registered_metrics
    return all("SparkDFExecutionEngine" in known[metric]["providers"] for metric in metrics if metric in known)

names = registry.list_registered_expectation_implementations()
print(json.dumps([name for name in names if not on_spark(name)]))
"""


def probed(code: str) -> str:
    """Run code in a new process, without Great Expectations' warnings, and return its last line."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={**os.environ, "GX_ANALYTICS_ENABLED": "false"},
    )
    return done.stdout.splitlines()[-1]


def test_what_has_no_provider_for_spark_is_refused() -> None:
    assert set(json.loads(probed(SPARK_PROBE))) - set(REFUSED_EXPECTATIONS) == set(WITHOUT_SPARK)


def test_the_table_equals_the_registry() -> None:
    registered: dict[str, dict[str, bool]] = json.loads(probed(PROBE))
    assert set(registered) == {*EXPECTATIONS, *REFUSED_EXPECTATIONS, *WITHOUT_SPARK}
    for table in (EXPECTATIONS, REFUSED_EXPECTATIONS):
        assert set(WITHOUT_SPARK).isdisjoint(table)
    for name, arguments in EXPECTATIONS.items():
        fields = {key: needed for key, needed in registered[name].items() if key not in NOT_FOR_POLICIES}
        assert set(arguments.required) == {key for key, needed in fields.items() if needed}, name
        assert set(arguments.optional) == {key for key, needed in fields.items() if not needed}, name
