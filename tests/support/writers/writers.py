"""The writers of both engines for tests that every one of them must pass, and faults planted where each one proves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from maintainer.delta.commands.command_engine import CommandEngine
from maintainer.delta.commands.command_session import classic_sessions
from maintainer.delta.commands.connect_session import ConnectLease
from maintainer.delta.engine.table_engine import DeltaEngine
from maintainer.delta.log.staged_file import WrittenFile
from maintainer.delta.spark.spark_session import SessionLease
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.engine.protocols import TableEngine
from tests.support.tables.delta_tables import actions_of, forge_commit, forget_logs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Fault = Callable[[Path], None]


@contextmanager
def engine_of(
    kind: str, lease: SessionLease, url: str, fault: Fault | None = None, path: Path | None = None
) -> Iterator[TableEngine]:
    """A worker of each kind; the fault is planted where the kind proves: before or after the commit."""

    def before(storage: TableStorage, written: list[WrittenFile]) -> None:
        assert fault is not None
        assert path is not None
        fault(path / written[0].path)
        written[0].add["size"] = (path / written[0].path).stat().st_size

    def after(version: int) -> None:
        assert fault is not None
        assert path is not None
        (added,) = [action["add"] for action in actions_of(path, version) if "add" in action]
        fault(path / added["path"])
        admit_size(path, version)
        forget_logs(lease.spark)

    if kind == "transaction":
        with DeltaEngine(lease, between_write_and_proof=before if fault else None).worker("contract") as worker:
            yield worker
    elif kind == "command":
        engine = CommandEngine(classic_sessions(lease), between_commit_and_proof=after if fault else None)
        with engine.worker("contract") as command_worker:
            yield command_worker
    else:
        from pyspark.sql.connect.session import SparkSession as RemoteSession

        # Without `open_connect`, which makes this whole process one of Spark Connect; test_cli_connect.py has it.
        base: Any = RemoteSession(connection=url)
        connected = ConnectLease(base, lambda: cast(Any, RemoteSession(connection=url)), 2, {})
        engine = CommandEngine(connected.sessions(), between_commit_and_proof=after if fault else None)
        try:
            with engine.worker("contract") as connect_worker:
                yield connect_worker
        finally:
            base.stop()


def admit_size(path: Path, version: int) -> None:
    """Make the log say the size that its added files have now."""

    def admit(actions: list[dict[str, Any]]) -> None:
        for add in (action["add"] for action in actions if "add" in action):
            add["size"] = (path / add["path"]).stat().st_size

    forge_commit(path, version, admit)


def build(spark: SparkSession, path: Path) -> None:
    """Ids 0 to 39 in partitions null, 'a b' and 'é%', two files each."""
    for start in (0, 20):
        frame = spark.range(start, start + 20).selectExpr(
            "id",
            "if(id % 3 = 0, NULL, cast(id AS STRING)) s",
            "element_at(array(NULL, 'a b', 'é%'), 1 + int(id % 3)) p",
        )
        frame.coalesce(1).write.format("delta").partitionBy("p").mode("append").save(str(path))
