"""The one place that starts Spark for tests: a session of our own, by our own code, for all folders of tests.

Two fixtures would be two leases, and the second one would borrow what the first one started.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.support.suites.store_lake import is_on_store, served_lake

if TYPE_CHECKING:
    from maintainer.delta.spark.spark_session import SessionLease


@pytest.fixture(scope="session")
def lease(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SessionLease]:
    """The session of this test run: two cores, started fast."""
    from maintainer.delta.spark.session_settings import tuned
    from maintainer.delta.spark.spark_session import open_session
    from maintainer.engine.session_options import SessionOptions

    log = tmp_path_factory.mktemp("engine") / "spark.log"
    # The sessions of other writers, too: with Spark's own defaults each of their commits runs hundreds of tasks.
    conf = {"spark.driver.memory": "2g", **tuned(2)}
    options = SessionOptions(master="local[2]", conf=tuple(conf.items()), log_path=log, app_name="tests")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    with ExitStack() as stack:
        if is_on_store():
            conf |= stack.enter_context(served_lake())
            options = replace(options, conf=tuple(conf.items()), storage=("s3",))
        lease = stack.enter_context(open_session(options))
        assert not lease.borrowed
        yield lease
