"""Opens the engine for as long as a command needs it. Spark and Delta are imported here, on the way in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from maintainer.app.project import Project
from maintainer.engine import Engine
from maintainer.journal.ledger import LedgerSink


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What a user may say about the session that does the work.

    ``master`` None means ``local[*]``, or whatever an already active session has. ``conf`` holds ``--conf``
    settings in their order. ``log_path`` takes the engine's own words; None drops them at the end.
    """

    master: str | None = None
    conf: tuple[tuple[str, str], ...] = ()
    log_path: Path | None = None


@contextmanager
def open_engine(options: EngineOptions | None = None) -> Iterator[Engine]:
    """Borrow the session that is active in this process, or start one that ends with the block.

    Raises:
        EnvironmentUnfit: Java, the JARs or the session are not as they must be; nothing was touched.
    """
    options = options or EngineOptions()
    from maintainer.delta.session import SessionOptions, open_session
    from maintainer.delta.table_engine import DeltaEngine

    session = SessionOptions(master=options.master, conf=options.conf, log_path=options.log_path)
    with open_session(session) as lease:
        yield DeltaEngine(lease)


def open_ledger(project: Project, engine: Engine) -> LedgerSink:
    """The ledger of a project: a Delta table, made when it is first written to."""
    from maintainer.delta.ledger_table import DeltaLedger

    return DeltaLedger(engine, project.ledger_location)
