"""Find out where names in a catalog lead, and which tables stand beside them there.

A catalog that does not answer is said to be that: it is not the table that is at fault.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from maintainer.delta.engine.endpoint_probe import CATALOG, SILENCE_SECONDS, catalog_of, signs_of_life
from maintainer.delta.engine.unity_catalog import UnityCatalog, unity_catalog
from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.jvm.catalog_calls import SESSION_CATALOG, CatalogEntry
from maintainer.delta.spark.start_conf import has_catalog
from maintainer.delta.storage.failures.engine_failures import catalog_error, no_table, not_delta
from maintainer.errors import CatalogAway, EnvironmentUnfit, NoTable, NotSupportedYet, ProjectError, raise_from
from maintainer.model.table.table_facts import TableRef

NO_CATALOG_HELP = (
    "write the table's path, or name the catalog in `spark: conf:` of maintainer.yml, "
    "as in `spark.sql.catalogImplementation: hive`"
)
MAX_CATALOG_TABLES = 100_000
"""Tables that a catalog is listed for; nobody reads a list that is longer."""

DEFAULT_DATABASE = "default"

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
    catalog, parts = catalog_of(name, jvm.session_setting)
    unity = unity_catalog(catalog, jvm.session_setting, os.environ)
    with _catalog_errors(jvm, name, name, unity):
        entry = jvm.catalog_entry(name) if unity is None else unity.entry(parts, name)
    if entry is None:
        raise no_table("there is no such table in the catalog", name)
    return entry


def delta_entry(jvm: DeltaJvm, name: str) -> CatalogEntry:
    """Return what the catalog says of the Delta table that a name leads to.

    Raises:
        TableError: T401, it names no table; T402, it names something else.
        EnvironmentUnfit: E647, the catalog does not answer.
    """
    entry = entry_of(jvm, name)
    if not entry.is_delta or not entry.location:
        found = "a view" if entry.is_view else f"provider {entry.provider or 'unknown'}"
        raise not_delta("this is not a Delta table", name, found)
    return entry


def tables_in_catalog(
    jvm: DeltaJvm,
    wanted: Callable[[str], bool] = lambda database: True,
    meant: Callable[[str], bool] = lambda catalog: True,
) -> Iterator[tuple[str, str]]:
    """Yield name and location URI of every Delta table of the session catalog and of those of Unity, each in order.

    Args:
        jvm: The session.
        wanted: Tells by its name, as ``sales`` or ``prod.sales``, whether a database is looked into.
        meant: Tells by its name whether a catalog but the session's is.

    Raises:
        EnvironmentUnfit: E647, the catalog does not answer.
        ProjectError: E644, it has too many tables.
        NotSupportedYet: E620, after the tables of the others: one that is meant cannot be listed.
    """
    jvm.activate()
    if not jvm.has_catalog:
        return
    num_tables = 0
    settings = jvm.session_settings()
    others = (key.removeprefix(CATALOG) for key, text in settings.items() if text and _is_named(key))
    names = sorted(name for name in others if "." not in name and meant(name))  # with a dot: a setting of one of them
    catalogs = {name: unity_catalog(name, settings.get, os.environ) for name in names}
    for unity, parts in _databases(jvm, [unity for unity in catalogs.values() if unity is not None]):
        database = ".".join(parts)
        if not wanted(database):
            continue
        entries = _entries(jvm, unity, database)
        num_tables += len(entries)
        if num_tables > MAX_CATALOG_TABLES:
            raise ProjectError(
                "the catalog has too many tables to list",
                code="E644",
                where=database,
                found=f"more than {MAX_CATALOG_TABLES:,}",
                help="name a folder, as in `maintainer inventory PATH`",
            )
        for entry in entries:
            if entry.is_delta and entry.location:
                yield ".".join(map(_quoted, (*parts, entry.name))), entry.location
    if unlisted := [name for name, unity in catalogs.items() if unity is None]:
        raise _not_listed(unlisted, jvm)


def _not_listed(catalogs: Sequence[str], jvm: DeltaJvm) -> NotSupportedYet:
    """Return E620: what a catalog's class lists may be no more than a page, and it hands out keys for each table."""
    classes = ", ".join(f"{name}: {jvm.session_setting(CATALOG + name)}" for name in catalogs)
    return NotSupportedYet(
        f"the tables of catalog {' and '.join(catalogs)} cannot be listed, because only its class can ask it",
        where=", ".join(catalogs),
        found=classes,
        allowed="the session catalog, and Unity's with a fixed token, without a proxy or trust store of Java's",
        help="declare the folders of its tables as `roots:`, or name them one by one, shallow clones too",
    )


def _databases(
    jvm: DeltaJvm, catalogs: Iterable[UnityCatalog]
) -> Iterator[tuple[UnityCatalog | None, tuple[str, ...]]]:
    """Yield the parts of the name of each database, and the catalog of Unity that has it.

    A session catalog in memory is empty until its session starts, and is no reason to start it.
    """
    settings = jvm.session_settings()
    if jvm.is_started or has_catalog({key: text for key, text in settings.items() if text and not _is_named(key)}):
        with _catalog_errors(jvm, "the catalog"):
            databases = jvm.session_databases()
        yield from ((None, (database,)) for database in databases)
    for unity in catalogs:
        with _catalog_errors(jvm, f"the catalog {unity.name}", unity=unity):
            schemas = unity.schemas()
        yield from ((unity, (unity.name, schema)) for schema in schemas)


def _is_named(key: str) -> bool:
    """Whether a setting belongs to a catalog that is not the session's."""
    return key.startswith(CATALOG) and key != f"{CATALOG}{SESSION_CATALOG}"


def neighbours_in_catalog(jvm: DeltaJvm, tables: Iterable[TableRef]) -> Iterator[TableRef]:
    """Yield the Delta tables that stand in the same databases of the session catalog or of Unity's as some tables.

    One of them may be a shallow clone that no policy names; its log names files of its source. A table that Unity
    manages is none of one that it does not.

    Raises:
        EnvironmentUnfit: E647, the catalog does not answer.
    """
    named = [catalog_of(ref.identifier, jvm.session_setting) for ref in tables if not ref.is_path]
    if not named or not jvm.has_catalog:
        return
    places = {(catalog, *([DEFAULT_DATABASE, *parts][-2:])) for catalog, parts in named}
    known = {(catalog, database.lower(), table.lower()) for catalog, database, table in places}
    for catalog, database in sorted({place[:2] for place in places}):
        unity = unity_catalog(catalog, jvm.session_setting, os.environ)
        if unity is None and catalog != SESSION_CATALOG:
            continue  # only its class can ask it: clones there need a policy, as anywhere else
        parts = (database,) if unity is None else (catalog, database)
        for entry in _entries(jvm, unity, ".".join(parts)):
            is_other = (catalog, database.lower(), entry.name.lower()) not in known
            if is_other and entry.is_delta and entry.location and not entry.managed_as:
                yield TableRef(".".join(map(_quoted, (*parts, entry.name))))


def _entries(jvm: DeltaJvm, unity: UnityCatalog | None, database: str) -> list[CatalogEntry]:
    """The tables and views of a database, in the order of their names."""
    with _catalog_errors(jvm, f"the catalog's database {database}", unity=unity):
        entries = jvm.session_tables(database) if unity is None else unity.tables(database)
    return sorted(entries, key=lambda entry: entry.name)


def _quoted(part: str) -> str:
    return part if _PLAIN.fullmatch(part) else f"`{part.replace('`', '``')}`"


_silences: dict[tuple[str, str], tuple[float, EnvironmentUnfit]] = {}
"""By metastore and catalog: until when, and what the first name failed with. Of this process: each worker has a session
of its own, and all ask one metastore."""
_answers: dict[tuple[str, str], float] = {}
"""By metastore and catalog: until when an answer counts, so that names are asked side by side."""
_first_contacts: dict[tuple[str, str], threading.Lock] = {}


@contextmanager
def _catalog_errors(
    jvm: DeltaJvm, where: str, name: str | None = None, unity: UnityCatalog | None = None
) -> Iterator[None]:
    """Raise what goes wrong while a catalog is asked, as an error of our own.

    Args:
        jvm: The session.
        where: What is asked for.
        name: A name in the catalog that is asked; None if it does not matter which.
        unity: The catalog of Unity that is asked.
    """

    def setting(key: str) -> str | None:
        if unity is not None or jvm.direct is not None:  # no other settings count, and no session starts for them
            return jvm.session_setting(key)
        value = jvm.spark.conf.get(key, None)
        hadoop_key = key.removeprefix("spark.hadoop.")  # hive-site.xml may say it
        return jvm.hadoop_conf().get(hadoop_key) if value is None and hadoop_key != key else value

    if name is None:
        name = DEFAULT_DATABASE if unity is None else f"{_quoted(unity.name)}.{DEFAULT_DATABASE}"
    for sign in signs_of_life([TableRef(name)], setting, os.environ).values():
        if (away := sign.error()) is not None:
            away.where = where
            raise away
    if unity is not None:
        address = str(unity.endpoint), unity.name
    else:
        address = setting("spark.hadoop.hive.metastore.uris") or "", catalog_of(name, setting)[0]
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
