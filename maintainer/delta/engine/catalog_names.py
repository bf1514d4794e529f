"""Find out where names in a catalog lead, and which tables stand beside them there.

A catalog that does not answer is said to be that: it is not the table that is at fault.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from maintainer.delta.engine.endpoint_probe import SILENCE_SECONDS, signs_of_life
from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.jvm.catalog_calls import SESSION_CATALOG, CatalogEntry
from maintainer.delta.storage.failures.engine_failures import catalog_error, no_table, not_delta
from maintainer.errors import CatalogAway, EnvironmentUnfit, NoTable, ProjectError, raise_from
from maintainer.model.table.table_facts import TableRef

NO_CATALOG_HELP = (
    "write the table's path, or name the catalog in `spark: conf:` of maintainer.yml, "
    "as in `spark.sql.catalogImplementation: hive`"
)
MAX_CATALOG_TABLES = 100_000
"""Tables that a catalog is listed for; nobody reads a list that is longer."""

DEFAULT_DATABASE = "default"

_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")
_PLAIN = re.compile(r"[A-Za-z0-9_]+")


def entry_of(jvm: DeltaJvm, name: str) -> CatalogEntry:
    """Return what the catalog says of a name.

    Raises:
        TableError: T401, it names no table.
        EnvironmentUnfit: E647, the catalog does not answer.
    """
    if not jvm.has_catalog:
        what = "there is no such table: this is a name in a catalog, and no catalog is set up"
        raise NoTable(what, where=name, help=NO_CATALOG_HELP)
    with _catalog_errors(jvm, name, name):
        entry = jvm.catalog_entry(name)
    if entry is None:
        raise no_table("there is no such table in the catalog", name)
    return entry


def root_of_name(jvm: DeltaJvm, name: str) -> JavaObject:
    """Return the Hadoop path of the Delta table that a name leads to.

    Raises:
        TableError: T401, it names no table; T402, it names something else.
        EnvironmentUnfit: E647, the catalog does not answer.
    """
    entry = entry_of(jvm, name)
    if not entry.is_delta or not entry.location:
        found = "a view" if entry.is_view else f"provider {entry.provider or 'unknown'}"
        raise not_delta("this is not a Delta table", name, found)
    return jvm.path(entry.location)


def tables_in_catalog(
    jvm: DeltaJvm, wanted: Callable[[str], bool] = lambda database: True
) -> Iterator[tuple[str, str]]:
    """Yield name and location URI of every Delta table of the session catalog, in the order of the names.

    Args:
        jvm: The session.
        wanted: Tells by its name whether a database is looked into.

    Raises:
        EnvironmentUnfit: E647, the catalog cannot be listed.
        ProjectError: E644, it has too many tables.
    """
    jvm.activate()
    if not jvm.has_catalog:
        return
    num_tables = 0
    with _catalog_errors(jvm, "the catalog"):
        databases = jvm.session_databases()
    for database in filter(wanted, databases):
        with _catalog_errors(jvm, f"the catalog's database {database}"):
            entries = jvm.session_tables(database)
        num_tables += len(entries)
        if num_tables > MAX_CATALOG_TABLES:
            raise ProjectError(
                "the catalog has too many tables to list",
                code="E644",
                where=database,
                found=f"more than {MAX_CATALOG_TABLES:,}",
                help="name a folder, as in `maintainer inventory PATH`",
            )
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_delta and entry.location:
                yield f"{_quoted(database)}.{_quoted(entry.name)}", entry.location


def neighbours_in_catalog(jvm: DeltaJvm, tables: Iterable[TableRef]) -> Iterator[TableRef]:
    """Yield the Delta tables that stand in the same databases of the session catalog as some tables.

    One of them may be a shallow clone that no policy names; its log names files of its source.

    Raises:
        EnvironmentUnfit: E647, the catalog does not answer.
    """
    named = [_parts(ref.identifier) for ref in tables if not ref.is_path]
    known = {tuple(parts) for parts in named}
    if not named or not jvm.has_catalog:
        return
    for database in sorted({parts[-2] if len(parts) == 2 else DEFAULT_DATABASE for parts in named if len(parts) < 3}):
        with _catalog_errors(jvm, f"the catalog's database {database}"):
            entries = jvm.session_tables(database)
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_delta and entry.location and (database, entry.name.lower()) not in known:
                yield TableRef(f"{_quoted(database)}.{_quoted(entry.name)}")


def _parts(name: str) -> list[str]:
    """The parts of a name in lower case, without the name of the session catalog."""
    parts = [(quoted.replace("``", "`") or plain).strip().lower() for quoted, plain in _PART.findall(name)]
    return parts[1:] if len(parts) == 3 and parts[0] == SESSION_CATALOG else parts


def _quoted(part: str) -> str:
    return part if _PLAIN.fullmatch(part) else f"`{part.replace('`', '``')}`"


_silences: dict[tuple[str, str], tuple[float, EnvironmentUnfit]] = {}
"""By metastore and catalog: until when, and what the first name failed with. Of this process: each worker has a session
of its own, and all ask one metastore."""
_answers: dict[tuple[str, str], float] = {}
"""By metastore and catalog: until when an answer counts, so that names are asked side by side."""
_first_contacts: dict[tuple[str, str], threading.Lock] = {}


@contextmanager
def _catalog_errors(jvm: DeltaJvm, where: str, name: str = DEFAULT_DATABASE) -> Iterator[None]:
    """Raise what goes wrong while a catalog is asked, as an error of our own.

    Args:
        jvm: The session.
        where: What is asked for.
        name: A name in the catalog that is asked; one in the session catalog if it does not matter which.
    """

    def setting(key: str) -> str | None:
        if jvm.direct is not None:  # nothing but these settings counts, and the session need not start for them
            return jvm.direct.conf.get(key)
        value = jvm.spark.conf.get(key, None)
        hadoop_key = key.removeprefix("spark.hadoop.")  # hive-site.xml may say it
        return jvm.hadoop_conf().get(hadoop_key) if value is None and hadoop_key != key else value

    for sign in signs_of_life([TableRef(name)], setting, os.environ).values():
        if (away := sign.error()) is not None:
            away.where = where
            raise away
    parts = _parts(name)
    address = setting("spark.hadoop.hive.metastore.uris") or "", parts[0] if len(parts) > 2 else ""
    with _first_contact(address):
        until, silence = _silences.get(address, (0.0, None))
        if silence is not None and time.monotonic() < until:
            raise CatalogAway(silence.what, where=where, found=silence.found, help=silence.help)
        try:
            yield
        except Exception as error:
            ours = catalog_error(error, where)
            if isinstance(ours, CatalogAway) and ours.is_silence:
                _silences[address] = (time.monotonic() + SILENCE_SECONDS, ours)
                _answers.pop(address, None)
            else:
                _answers[address] = time.monotonic() + SILENCE_SECONDS
            raise_from(ours, error)
        _answers[address] = time.monotonic() + SILENCE_SECONDS


@contextmanager
def _first_contact(address: tuple[str, str]) -> Iterator[None]:
    """Let one name ask a catalog that has not answered lately; the others wait for what becomes of it.

    The wait has an end: a table that was given up may hang in its question.
    """
    if time.monotonic() < _answers.get(address, 0.0):
        yield
        return
    contact = _first_contacts.setdefault(address, threading.Lock())
    is_first = contact.acquire(timeout=SILENCE_SECONDS)
    try:
        yield
    finally:
        if is_first:
            contact.release()
