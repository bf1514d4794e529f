"""Opens the engine for as long as a command needs it. Spark and Delta are imported here, on the way in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

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


@dataclass(frozen=True, slots=True)
class OpenedEngine:
    """A running engine, and what else its session is good for."""

    engine: Engine
    ledger_at: Callable[[str], LedgerSink]
    """Opens the ledger at a path or URI: a Delta table, made when it is first written to."""
    session_setting: Callable[[str], str | None] = lambda key: None
    """A setting of the session that was borrowed or started, None where it is not set; not one of our workers'."""


@contextmanager
def open_engine(options: EngineOptions | None = None) -> Iterator[OpenedEngine]:
    """Borrow the session that is active in this process, or start one that ends with the block.

    Raises:
        EnvironmentUnfit: Java, the JARs or the session are not as they must be; nothing was touched.
    """
    options = options or EngineOptions()
    from maintainer.delta.ledger_table import LedgerTable
    from maintainer.delta.session import SessionOptions, open_session, worker_session
    from maintainer.delta.table_engine import DeltaEngine

    session = SessionOptions(master=options.master, conf=options.conf, log_path=options.log_path)
    with open_session(session) as lease:
        yield OpenedEngine(
            DeltaEngine(lease),
            lambda location: LedgerTable(worker_session(lease), location),
            lambda key: lease.spark.conf.get(key, None),
        )
