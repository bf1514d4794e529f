"""The one place that starts Spark for tests: a session of our own, by our own code."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from maintainer.delta.session import SessionLease, SessionOptions, open_session, worker_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def lease(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SessionLease]:
    """The session of this test run: two cores, started fast."""
    log = tmp_path_factory.mktemp("engine") / "spark.log"
    options = SessionOptions(
        master="local[2]", conf=(("spark.driver.memory", "2g"),), log_path=log, app_name="tests", quick=True
    )
    logging.getLogger("py4j").setLevel(logging.WARNING)
    with open_session(options) as lease:
        yield lease


@pytest.fixture(scope="session")
def spark(lease: SessionLease) -> SparkSession:
    """A worker session with all our settings, for building tables and looking at them."""
    return worker_session(lease)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """An empty folder for this test's tables."""
    folder = tmp_path / "lake"
    folder.mkdir()
    return folder
