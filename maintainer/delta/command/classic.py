"""Command sessions on a classic Spark session: the command engine where the transaction engine could run as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from maintainer.delta.command.session import CommandSession
from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.session import SessionLease, worker_session


def classic_sessions(lease: SessionLease) -> Callable[[str], AbstractContextManager[CommandSession]]:
    """Return what opens a worker's session on a lease, with a job group of its own."""

    @contextmanager
    def open_one(name: str) -> Iterator[CommandSession]:
        spark = worker_session(lease)
        context = spark.sparkContext

        def describe(text: str) -> None:
            context.setLocalProperty("spark.scheduler.pool", name)
            context.setJobGroup(name, text, interruptOnCancel=False)

        describe(f"maintainer worker {name}")
        try:
            jvm = DeltaJvm(spark)
            yield CommandSession(
                spark,
                lambda: context.cancelJobGroup(name),
                describe,
                lease.cores,
                lambda location: _disk_commits(jvm, location),
            )
        finally:
            for key in ("spark.scheduler.pool", "spark.jobGroup.id", "spark.job.description"):
                context.setLocalProperty(key, None)  # type: ignore[arg-type]  # None removes the property

    return open_one


def _disk_commits(jvm: DeltaJvm, location: str) -> str | None:
    try:
        return jvm.make_commits_exclusive(jvm.log_at(location))
    except Exception:
        # This engine asks for nothing private. Another build of Delta commits as all its writers do.
        return None
