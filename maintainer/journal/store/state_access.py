"""Find a project's state: a folder of this machine, or the cache of one that lies on an object store.

A state on a store is reached once for each process. What past runs recorded is fetched into the cache when it is first
asked for, and anew at the beginning of each run.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from maintainer.errors import ProjectError
from maintainer.errors.foreign_text import without_secrets
from maintainer.journal.folder.atomic_files import PRIVATE_FOLDER, FolderUnwritable
from maintainer.journal.folder.cache_home import HOME_VARIABLE, cache_home
from maintainer.journal.folder.documents import Documents
from maintainer.journal.folder.run_folder import LEASES
from maintainer.journal.memory.table_records import STATE_FILE
from maintainer.policy.project.project_sections import RUNS_NAME
from maintainer.policy.project.project_settings import ProjectSettings
from maintainer.policy.table_names import is_uri

if TYPE_CHECKING:  # loaded only for a state on a store: `validate` starts without it
    from maintainer.journal.store.published_run import PublishedRun
    from maintainer.journal.store.state_mirror import StateMirror


@dataclass(slots=True)
class _Reached:
    mirror: StateMirror
    fetched: bool = False
    fetched_all: bool = False


_states: dict[tuple[object, ...], _Reached] = {}
"""The states that this process has reached, by URI and settings."""

_states_lock = threading.Lock()


def runs_dir_of(settings: ProjectSettings, *, every_run: bool = False) -> Path:
    """Return the folder of all run folders, on this machine; what is on a store is fetched before.

    Args:
        settings: The project's.
        every_run: All records of past runs; else what a run must know of them.

    Raises:
        EnvironmentUnfit: E681 to E683, the store cannot be read.
    """
    if not is_uri(settings.state):
        return Path(settings.state) / RUNS_NAME
    reached = _reached(settings)
    with _states_lock, _explained(settings):
        if not (reached.fetched_all if every_run else reached.fetched or reached.fetched_all):
            reached.mirror.fetch(time.time_ns() // 1_000_000, everything=every_run)
            reached.fetched = True
            reached.fetched_all = reached.fetched_all or every_run
    return reached.mirror.runs_dir


def runs_dir_with(settings: ProjectSettings, run_id: str) -> Path:
    """Return the folder of all run folders, with everything that one run recorded, however old it is.

    Raises:
        EnvironmentUnfit: E681 to E683, the store cannot be read.
    """
    if not is_uri(settings.state):
        return Path(settings.state) / RUNS_NAME
    mirror = _reached(settings).mirror
    with _explained(settings):
        mirror.fetch_run(run_id)
    return mirror.runs_dir


def local_runs_dir(settings: ProjectSettings) -> Path:
    """Return where on this machine run folders are written; no store is asked.

    Raises:
        ProjectError: E687, the state is on a store, and this user has no place for its copy.
    """
    return (_cache_of(settings.state) if is_uri(settings.state) else Path(settings.state)) / RUNS_NAME


def try_store(settings: ProjectSettings) -> None:
    """Show that the store of a state does what a run needs: list, read, write, and keep the conditions of writes.

    Args:
        settings: Of a project whose state is on an object store. One small object is written there, as by each run.

    Raises:
        EnvironmentUnfit: E681 to E684, E691 to E695: what it does not do, and why.
    """
    storage = _reached(settings).mirror.storage
    with _explained(settings):
        storage.listed(f"{LEASES}/")
        storage.read(STATE_FILE)
        storage.store_ms()


def setting_without_effect(settings: ProjectSettings) -> str | None:
    """Return the first of Spark's settings for the store of a state that only Hadoop knows; None where there is none.

    Tables there follow it; the state is read and written by a client that has no equal for it.
    """
    from maintainer.engine.store.cloud_settings import only_hadoop

    return only_hadoop(settings.state, dict(settings.spark.settings)) if is_uri(settings.state) else None


def shared_documents(settings: ProjectSettings, folder: str = LEASES) -> Documents | None:
    """Return the leases, or other documents, on the store of a state; None where they lie beside the run folders.

    Raises:
        EnvironmentUnfit: E681, the settings of the store cannot be used.
    """
    if not is_uri(settings.state):
        return None
    from maintainer.journal.folder.documents import documents_in

    return documents_in(_reached(settings).mirror.storage, folder)


def begin_run(settings: ProjectSettings, run_id: str) -> PublishedRun | None:
    """Begin to publish a run; None where the state is a folder of this machine.

    Raises:
        EnvironmentUnfit: E681 to E684, the store cannot be used.
    """
    if not is_uri(settings.state):
        return None
    from maintainer.journal.store.published_run import PublishedRun

    reached = _reached(settings)
    with _explained(settings):
        run = PublishedRun.begin(reached.mirror, run_id)
    reached.fetched = True
    return run


def _reached(settings: ProjectSettings) -> _Reached:
    from maintainer.engine.store.cloud_settings import store_settings
    from maintainer.engine.store.object_storage import ObjectStorage
    from maintainer.journal.store.state_mirror import StateMirror

    key = (settings.state, settings.spark.settings)
    with _states_lock, _explained(settings):
        if key not in _states:
            cache = _cache_of(settings.state)
            cache.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            storage = ObjectStorage.open(settings.state, store_settings(settings.state, dict(settings.spark.settings)))
            _states[key] = _Reached(StateMirror(storage, cache))
        return _states[key]


def _cache_of(uri: str) -> Path:
    home = cache_home(os.environ)
    if home is None:
        what = "this user has no home folder to keep a copy of the state in"
        raise ProjectError(what, code="E687", where=uri, help=f"name one in the environment variable {HOME_VARIABLE}")
    readable = re.sub(r"[^A-Za-z0-9.-]+", "_", without_secrets(uri))[-40:].strip("_")
    return home / "state" / f"{readable}-{hashlib.sha256(uri.encode()).hexdigest()[:12]}"


@contextmanager
def _explained(settings: ProjectSettings) -> Iterator[None]:
    from maintainer.engine.store.store_failures import StoreFailure

    try:
        yield
    except StoreFailure as error:
        unfit = error.unfit(settings.state)
        if name := setting_without_effect(settings):
            unfit.help = f"{unfit.help}; `{name}` has no effect on the state: only Hadoop knows it"
        raise unfit from error
    except OSError as error:
        raise FolderUnwritable.at(_cache_of(settings.state), error) from error
