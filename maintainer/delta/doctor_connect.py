"""What ``doctor`` looks at where a Spark Connect server does the work: the packages, the server, and its Delta."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from maintainer.delta.command.connect import open_connect, remote_of
from maintainer.delta.doctor_model import Check, Status
from maintainer.delta.start_conf import SessionOptions


def check_connect(options: SessionOptions, env: Mapping[str, str]) -> Iterator[Check]:
    """Connect, open a worker's session with all our settings, and run one statement of Delta's in it.

    Raises:
        MaintainerError: What is wrong, with the way to mend it.
    """
    started = time.monotonic()
    with open_connect(options, env) as lease:
        version = lease.spark.version
        with lease.sessions()("doctor") as session:
            session.rows("SELECT 1 AS one")
        cores = "unknown" if lease.cores is None else str(lease.cores)
    seconds = time.monotonic() - started
    detail = f"{remote_of(options, env)}: Spark {version}, cores {cores}, Delta is there; {seconds:.1f} s"
    yield Check("spark connect", Status.OK, detail)
