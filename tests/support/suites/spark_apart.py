"""How `make test` shares its tests among processes: those with a Spark session in one of them, which starts it once.

Each Java compiles everything anew, so two of them would do a third more. Which folders these are is a matter of speed
alone: any process makes itself a session when a test asks for one.

It is a plugin, `-p tests.support.suites.spark_apart`. `make nightly` and `make long`, almost all Spark, do without.
"""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

WITH_SESSION = ("tests/contract/", "tests/integration/", "tests/fault/")
OWN_PROCESSES = ("tests/integration/object_stores/", "tests/integration/catalogs/")
"""Folders whose tests start what they need in processes of their own."""


class SparkApart(LoadFileScheduling):  # type: ignore[misc]  # it has no types
    """A file's tests run in one process, in the order of the files; all that share the session are like one file."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(WITH_SESSION) and not nodeid.startswith(OWN_PROCESSES):
            return "tests with a Spark session"
        return str(super()._split_scope(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> SparkApart:
    """Share them so."""
    return SparkApart(config, log)
