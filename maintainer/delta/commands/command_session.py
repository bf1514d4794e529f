"""The session of one worker of the command engine: classic or Spark Connect, with settings that are put back.

``classic_sessions`` opens them on a classic Spark session, where the transaction engine could run as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.spark.spark_session import SessionLease, worker_session
from maintainer.delta.verify.version_proof import VERSION_SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


PIECE_BYTES = 16 << 20


@dataclass(slots=True)
class CommandSession:
    """A session of our own. ``interrupt`` cancels what runs in it; ``describe`` names the next jobs.

    ``cores`` is how many tasks run at once, 0 where nobody knows. ``exclusive_commits`` makes commits to the table at a
    location exclusive within a block and says what writes them; None where the JVM that commits is out of reach.

    Everything goes through Spark's public API, so that a classic session and one of Spark Connect are the same here.
    """

    spark: SparkSession
    interrupt: Callable[[], object]
    describe: Callable[[str], None] = lambda text: None
    cores: int = 0
    exclusive_commits: Callable[[str], AbstractContextManager[str | None]] = lambda location: nullcontext()

    def __post_init__(self) -> None:
        for key, value in VERSION_SETTINGS.items():
            self.spark.conf.set(key, value)

    def rows(self, statement: str) -> list[Any]:
        """Run a statement and return its rows."""
        return list(self.spark.sql(statement).collect())

    def files(self, path: str, *, recursive: bool = False) -> DataFrame:
        """List a folder: ``path`` (text), ``size`` (bytes), ``at`` (milliseconds). Contents are not read.

        Files whose names begin with ``_`` or ``.`` are not listed, nor what lies in folders of such names; partition
        folders (``_p=1``) are.
        """
        reader = self.spark.read.format("binaryFile").option("__globPaths__", "false")
        reader = reader.option("recursiveFileLookup", str(recursive).lower())
        return reader.load(path).selectExpr("path", "length AS size", "unix_millis(modificationTime) AS at")

    def contents(self, paths: list[str]) -> DataFrame:
        """The contents of files: ``path`` (text), and pieces of at most 16 MiB by number, which a message can carry."""
        reader = self.spark.read.format("binaryFile").option("__globPaths__", "false")
        pieces = f"explode(sequence(0, CAST(greatest(length - 1, 0) DIV {PIECE_BYTES} AS INT))) AS piece"
        part = f"substring(content, piece * {PIECE_BYTES} + 1, {PIECE_BYTES}) AS part"
        return reader.load(paths).selectExpr("path", "content", pieces).selectExpr("path", "piece", part)


def classic_sessions(lease: SessionLease) -> Callable[[str], AbstractContextManager[CommandSession]]:
    """Return what opens a worker's session on a lease, with a job group of its own."""

    @contextmanager
    def open_one(name: str) -> Iterator[CommandSession]:
        spark = worker_session(lease)
        jvm, cancel = DeltaJvm(spark), partial(spark.sparkContext.cancelJobGroup, name)
        describe = partial(jvm.enter_thread, name)
        describe(f"maintainer worker {name}")
        try:
            yield CommandSession(spark, cancel, describe, lease.cores, partial(_exclusive_commits, jvm))
        finally:
            jvm.leave_thread()

    return open_one


@contextmanager
def _exclusive_commits(jvm: DeltaJvm, location: str) -> Iterator[str | None]:
    with ExitStack() as stack:
        writer = None
        with suppress(Exception):
            # This engine asks for nothing private. Another build of Delta commits as all its writers do.
            writer = stack.enter_context(jvm.commands_exclusive(jvm.log_of_root(jvm.path(location), {})))
        yield writer
