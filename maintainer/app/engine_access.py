"""Open the engine for as long as a command needs it. Spark and Delta are imported here, when it opens."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Thread
from typing import TYPE_CHECKING, Any

from maintainer.engine.process_loss import is_engine_lost, session_gone
from maintainer.engine.protocols import (
    CommitProver,
    Engine,
    HistoryReader,
    SignOfLife,
    TableFinder,
    TablePlaces,
    TableReader,
    worker_name,
)
from maintainer.engine.session_options import SILENT, SessionOptions, StageListener
from maintainer.errors import MaintainerError, NotSupportedYet
from maintainer.journal.ledger.ledger_rebuild import LedgerStore
from maintainer.model.table.store_requests import StoreRequests
from maintainer.model.table.table_facts import TableRef

if TYPE_CHECKING:
    from maintainer.policy.project.project_settings import ProjectSettings


TRANSACTION, COMMAND = ENGINES = ("transaction", "command")
"""The engines, as ``--engine`` and ``engine:`` in maintainer.yml name them."""


@dataclass(frozen=True, slots=True)
class EngineOptions(SessionOptions):
    """What a user may say about the session that does the work, and about the engine that works in it.

    ``engine`` is ``transaction`` or ``command``; None means the command engine over Spark Connect, and the transaction
    engine elsewhere. ``spark`` is a SparkSession to work in, whatever else is active; then ``master``, ``conf`` and
    ``remote`` have no say. ``single_writer``: on S3 nobody else writes to the tables during a run. ``spread``:
    executors write bins outside Spark; None where the master is not local. ``scratch_bytes``: room for copies of a
    store's files. ``keeps_logs``: what was read of logs on a store stays in memory, because something in this process
    reads them next.
    """

    engine: str | None = None
    spark: Any = None
    single_writer: bool = False
    spread: bool | None = None
    scratch_bytes: int | None = None
    keeps_logs: bool = True
    on_warning: Callable[[str], None] = field(default=lambda text: warnings.warn(text, stacklevel=2), compare=False)
    """Called once for each setting of the session that lets others lose rows or files."""


@dataclass(frozen=True, slots=True)
class ProvingWorker:
    """What proving commits after the fact needs; neither can change a table."""

    reader: TableReader
    prover: CommitProver
    places: TablePlaces


@dataclass(frozen=True, slots=True)
class OpenedEngine:
    """An open engine and the services that use its session."""

    engine: Engine
    ledger_at: Callable[[str], LedgerStore | None]
    """Opens the ledger at a path or URI: a Delta table, made when it is first written to. None over Spark Connect:
    the path would be one of the server's."""
    proving: Callable[[], AbstractContextManager[ProvingWorker]]
    """A worker that proves commits; enter it on the thread that uses it. Raises E620 over Spark Connect."""
    history: Callable[[], AbstractContextManager[HistoryReader]]
    """A worker that reads tables' histories; enter it on the thread that uses it."""
    finder: Callable[[], AbstractContextManager[TableFinder]]
    """Finds tables in the catalog and in folders. Raises E620 over Spark Connect."""
    start_java: Callable[[], float] = lambda: 0.0
    """Starts the JVM of a session of our own, unless it runs; returns the seconds that the caller waited. Raises what
    keeps it from starting."""
    start: Callable[[], float] = lambda: 0.0
    """Starts the session that steps need, unless it runs; returns the seconds that the caller waited. Raises E607. Logs
    are read without it."""
    kill: Callable[[], None] = lambda: None
    """Ends a session of our own without waiting for what it does, for a process that is about to be killed."""
    signs_of_life: Callable[[Collection[TableRef]], Mapping[str, SignOfLife]] = lambda tables: {}
    """Begins to ask the stores and metastores of tables for signs of life; returns what waits for them, by identifier,
    for the tables whose service is known for sure."""
    hadoop_requests: Callable[[Collection[str]], StoreRequests | None] = lambda addresses: None
    """What Hadoop's client asked of the stores of these addresses since this was last called; None where it does not
    tell: in a session that others use, on a cluster, of a store that is not S3. It may hang with the JVM."""
    stages: StageListener = SILENT
    """Hears what a command waits for."""
    session_setting: Callable[[str], str | None] = lambda key: None
    """A setting of the session that was borrowed or started, None where it is not set; not one of our workers'."""

    @contextmanager
    def starting_beside(self, *also: Callable[[], object]) -> Iterator[Callable[[], None]]:
        """Yield what starts the session, and what else takes long, on threads of their own and only once.

        The block ends when the session has started; it does not wait for the others.
        """

        def quietly(call: Callable[[], object]) -> None:
            with suppress(Exception):  # whoever needs it is told
                call()

        threads = [Thread(target=quietly, args=(call,), daemon=True) for call in (self.start, *also)]

        def start() -> None:
            for thread in threads:
                if thread.ident is None:
                    thread.start()

        yield start
        if threads[0].ident is not None:
            threads[0].join()


def project_engine(settings: ProjectSettings, options: EngineOptions) -> EngineOptions:
    """Return the options with what maintainer.yml says about the engine where they leave it open."""
    return replace(
        options,
        engine=options.engine or settings.engine,
        conf=(*settings.spark.settings, *options.conf),  # the last of two wins
        single_writer=settings.single_writer,
        spread=settings.spread if options.spread is None else options.spread,
        scratch_bytes=settings.scratch_bytes,
        storage=settings.storage,
    )


@contextmanager
def open_engine(options: EngineOptions | None = None) -> Iterator[OpenedEngine]:
    """Borrow the session that is active in this process, or start one that ends with the block.

    Raises:
        EnvironmentUnfit: Java, the JARs, the session or the server are not as they must be; nothing was touched.
            E612, the session's JVM has ended, before the block or within it.
        NotSupportedYet: E620, the transaction engine over Spark Connect.
    """
    options = options or EngineOptions()
    from maintainer.delta.spark.session_settings import unsafe_settings

    try:
        with _open(options) as opened:
            for text in unsafe_settings(opened.session_setting):
                options.on_warning(text)
            yield opened
    except (MaintainerError, BrokenPipeError):
        # A pipe that broke is our own output's: py4j has a name of its own for the engine's.
        raise
    except Exception as error:
        if is_engine_lost(error):
            raise session_gone() from error
        raise


def _open(options: EngineOptions) -> AbstractContextManager[OpenedEngine]:
    from maintainer.delta.commands.connect_session import active_connect_session
    from maintainer.delta.spark.start_conf import remote_of

    connected_one = active_connect_session()
    remote = remote_of(options, os.environ) is not None or connected_one is not None
    if options.spark is not None:
        remote = options.spark is connected_one
    by_commands = options.engine == COMMAND or (remote and options.engine != TRANSACTION)
    if options.spread and by_commands:
        raise NotSupportedYet(
            "bins are written on executors by the transaction engine alone; Delta's commands are Spark's own jobs",
            help="leave out --spread, and `spread` in maintainer.yml; or use --engine transaction with --master",
        )
    return _open_connect(options) if remote and options.engine != TRANSACTION else _open_classic(options)


@contextmanager
def _reader(engine: Engine, name: str) -> Iterator[Any]:
    """A worker that reads tables and their histories, and finds them where the engine can."""
    with engine.worker(worker_name(name)) as worker:
        yield worker.reader


@contextmanager
def _open_connect(options: EngineOptions) -> Iterator[OpenedEngine]:
    from maintainer.delta.commands.command_engine import CommandEngine
    from maintainer.delta.commands.connect_session import open_connect

    with ExitStack() as connection:
        with options.stages.waiting("connecting to Spark Connect"):
            connected = connection.enter_context(open_connect(options))
        engine = CommandEngine(connected.sessions(), single_writer=options.single_writer)
        yield OpenedEngine(
            engine,
            lambda location: None,
            lambda: _not_over_connect("`maintainer verify` reads single files of a version"),
            partial(_reader, engine, "history"),
            lambda: _not_over_connect("`maintainer inventory` looks through folders"),
            stages=options.stages,
            session_setting=lambda key: connected.spark.conf.get(key, None),
        )


@contextmanager
def _not_over_connect(what: str) -> Iterator[Any]:
    raise NotSupportedYet(
        f"{what}, which Spark Connect cannot",
        help="run it where the session is in this process, for example --master local[*]",
    )
    yield


@contextmanager
def _open_classic(options: EngineOptions) -> Iterator[OpenedEngine]:
    from maintainer.delta.engine.endpoint_probe import signs_of_life
    from maintainer.delta.engine.hadoop_requests import HadoopRequests
    from maintainer.delta.engine.ledger_table import LedgerTable
    from maintainer.delta.engine.table_engine import DeltaEngine
    from maintainer.delta.rewrite.executors.executor_bins import Executors
    from maintainer.delta.spark.spark_session import lend_session, open_session, worker_session
    from maintainer.delta.storage.fetched_files import SCRATCH_ROOM

    SCRATCH_ROOM.most_bytes = options.scratch_bytes
    with open_session(options, when_needed=True) if options.spark is None else lend_session(options.spark) as lease:
        if options.engine == COMMAND:
            from maintainer.delta.commands.command_engine import CommandEngine
            from maintainer.delta.commands.command_session import classic_sessions

            chosen: Engine = CommandEngine(classic_sessions(lease), single_writer=options.single_writer)
        else:
            executors = Executors(options.spread, options.on_warning)
            chosen = DeltaEngine(
                lease, single_writer=options.single_writer, executors=executors, keeps_logs=options.keeps_logs
            )

        reading = DeltaEngine(lease)

        @contextmanager
        def proving() -> Iterator[ProvingWorker]:
            from maintainer.delta.verify.commit_proof import DeltaCommitProver

            with reading.worker(worker_name("verify")) as worker:
                yield ProvingWorker(worker.reader, DeltaCommitProver(worker.jvm), DeltaEngine.places)

        own_session = partial(worker_session, lease)
        yield OpenedEngine(
            chosen,
            lambda location: LedgerTable(lease.unstarted(own_session) or own_session(), location),
            proving,
            partial(_reader, reading, "history"),
            partial(_reader, reading, "inventory"),
            start_java=lease.start_java,
            start=lease.start,
            kill=lease.kill,
            hadoop_requests=HadoopRequests(lease, own_session).since_last,
            signs_of_life=partial(signs_of_life, setting=lease.setting, environ=os.environ),
            stages=options.stages,
            session_setting=lease.setting,
        )
