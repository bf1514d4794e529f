"""Looks at tables that are wrong in one way each, with both engines, and prints what was said as JSON.

A process of its own: permissions must bind it, which root's they do not.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from maintainer.delta.commands.command_engine import CommandEngine
from maintainer.delta.commands.command_session import classic_sessions
from maintainer.delta.engine.table_engine import DeltaEngine
from maintainer.delta.spark.spark_session import open_session
from maintainer.engine.protocols import Engine, TableEngine
from maintainer.engine.session_options import SessionOptions
from maintainer.errors import MaintainerError
from maintainer.model.table.table_facts import TableRef
from tests.support.tables.delta_tables import compaction, no_intent, stamp
from tests.support.tables.sick_tables import ask_for_features, make_table

CLOSED = {"closed table": ("t", 0o000), "closed parent": (".", 0o000), "closed log": ("t/_delta_log", 0o000),
          "log of names": ("t/_delta_log", 0o444)}  # fmt: skip
DAMAGE: dict[str, Callable[[Path], object]] = {
    "closed file": lambda file: file.chmod(0),
    "cut off file": lambda file: file.write_bytes(file.read_bytes()[:-30]),
    "garbage file": lambda file: file.write_bytes(b"x" * file.stat().st_size),
    "missing file": Path.unlink,
}
ELSEWHERE = {
    "no connector": "s3a://nowhere/t",
    "no such scheme": "nothing://x/t",
    "nobody there": "hdfs://127.0.0.1:1/t",
}
FEATURES = {"catalogManaged": ["catalogManaged", "vacuumProtocolCheck"],
            "catalogOwned-preview": ["catalogOwned-preview"]}  # fmt: skip


@contextlib.contextmanager
def closed(folder: Path, mode: int) -> Iterator[None]:
    """A folder with other permissions within the block."""
    folder.chmod(mode)
    try:
        yield
    finally:
        folder.chmod(0o755)


def of_catalog(path: Path, features: list[str]) -> None:
    """Make it a table whose commits its catalog manages."""
    ask_for_features(path, features, [*features, "inCommitTimestamp"])


def said(look: Callable[[], object]) -> list[str]:
    """Code, what was found and help of the error that a look ends with."""
    try:
        look()
    except MaintainerError as error:
        return [error.code, error.found or "", error.help or ""]
    return ["none", "", ""]


def look_at_all(worker: TableEngine, root: Path, *, samples: bool) -> dict[str, list[str]]:
    """What is said of each table."""
    causes: dict[str, list[str]] = {}
    for name, (inner, mode) in CLOSED.items():
        path = root / name.replace(" ", "_") / "t"
        make_table(path)
        with closed(path.parent / inner, mode):
            causes[name] = said(lambda path=path: worker.reader.facts(TableRef(str(path))))  # type: ignore[misc]
    for name, features in FEATURES.items():
        path = root / name
        make_table(path)
        of_catalog(path, features)
        causes[name] = said(lambda path=path: worker.reader.facts(TableRef(str(path))))  # type: ignore[misc]
    for name, location in ELSEWHERE.items():
        causes[name] = said(lambda location=location: worker.reader.facts(TableRef(location)))  # type: ignore[misc]
    for name, damage in DAMAGE.items():
        path = root / name.replace(" ", "_")
        make_table(path)
        facts = worker.reader.facts(TableRef(str(path)))
        step, batch = compaction(facts)
        damage(sorted(path.glob("*.parquet"))[0])
        causes[f"rewrite of {name}"] = said(
            lambda facts=facts, step=step, batch=batch: worker.writer.rewrite(  # type: ignore[misc]
                facts, step, batch, stamp(), no_intent
            )
        )
        if samples:
            causes[f"sample of {name}"] = said(
                lambda facts=facts: worker.reader.column_sample(facts, ("id",), max_rows=5)  # type: ignore[misc]
            )
    return causes


def main(root: Path) -> None:
    """Print what both engines say."""
    options = SessionOptions(master="local[2]", conf=(("spark.driver.memory", "1g"),), log_path=root / "l")
    causes = {}
    with open_session(options) as lease:
        engines: dict[str, Engine] = {
            "transaction": DeltaEngine(lease),
            "command": CommandEngine(classic_sessions(lease)),
        }
        for name, engine in engines.items():
            with engine.worker(name) as worker:
                causes[name] = look_at_all(worker, root / name, samples=name == "transaction")
    sys.stdout.write(json.dumps(causes) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
