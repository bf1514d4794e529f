"""Check what must be true before anything is written: the planned table, a log without damage, commits that stay.

It is still the planned table by its id, schema, partitioning, protocol and some properties.

Some damage every reader of a log passes over. A commit file without a byte is what a full disk or a machine that lost
its power leaves: Delta reads it as a version that did nothing, and what the writer had put there is gone without a
word.

On S3 Delta's default log store looks whether a version exists and then writes over it, and beside a customer's writer
we are the second driver (Delta's documentation, "Storage configuration"). Our commits there are conditional writes, on
a disk hard links: both fail when the version exists. Some servers have no conditional writes, or ignore the condition;
some file systems have no hard links. On Google Delta's own store creates; one that renames writes over a commit there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

from maintainer.delta.jvm import DeltaJvm, JavaObject
from maintainer.delta.jvm.commit_store import IGNORES_CONDITION, NO_CONDITIONAL_WRITES, NO_HARD_LINKS, RENAMING_STORES
from maintainer.delta.log.actions import read_protocol
from maintainer.delta.log.commit_history import find_conflicting_commit, lost_to
from maintainer.delta.log.replay.version_replay import replay_version
from maintainer.delta.spark.installed_versions import DELTA_VERSION, installed
from maintainer.delta.storage.failures.engine_failures import log_unreadable, table_errors
from maintainer.delta.storage.file_store import StoredFile, local_path
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.errors import CommitConflict, EnvironmentUnfit, Refused, TableError
from maintainer.errors.missing_files import RESTORE_TAKES_BACK
from maintainer.model.table.log_names import COMMIT_NAME
from maintainer.model.table.store_kinds import CreatedOnce, store_kind
from maintainer.model.table.table_facts import TableFacts
from maintainer.planning.selection.schema_columns import without_state

PROPERTIES_WE_REST_ON = ("delta.enableRowTracking", "delta.columnMapping.mode")
"""With another value of these, files must be read or written in another way."""

MAX_NAMED = 5

UNSAFE_READS = ("spark.sql.files.ignoreMissingFiles", "spark.sql.files.ignoreCorruptFiles")
"""With either one on, a rewrite loses the rows of files it cannot read, and re-reading them hides it."""

MADE_ANEW = "the table was dropped and created again since it was planned"

LOSES_ROWS = "a rewrite would lose the rows of files that cannot be read"


def refuse_unsafe_reads(setting: Callable[[str], object], where: str, consequence: str) -> None:
    """Refuse a session that skips files which it cannot read.

    Args:
        setting: Returns a Spark setting, None where it is not set.
        where: The table, for the message.
        consequence: What would happen, for the message.

    Raises:
        EnvironmentUnfit: E606.
    """
    for key in UNSAFE_READS:
        if str(setting(key)).lower() == "true":
            raise EnvironmentUnfit(f"{key} is on: {consequence}", code="E606", where=where, help=f"set {key}=false")


def refuse_unsafe_store(jvm: DeltaJvm, facts: TableFacts) -> None:
    """Refuse a place where a commit of ours could overwrite another's; see ``refuse_unsafe_log_store``."""
    where = facts.ref.identifier
    with table_errors(where):
        refuse_unsafe_log_store(
            facts.location,
            jvm.session_setting,
            where,
            lambda: jvm.make_commits_exclusive(jvm.log_at(facts.location)),
        )


def check_same_table(jvm: DeltaJvm, storage: TableStorage, facts: TableFacts, snapshot: JavaObject) -> None:
    """Refuse if the table at this place is not the one that was planned.

    Raises:
        CommitConflict: C701, another table id, or no table at all; names the other commit where a statement such as
            CREATE OR REPLACE put another table on top of the log.
    """
    if snapshot.version() < 0:
        raise table_dropped(facts)
    _refuse_other_table(storage, facts, jvm.metadata(snapshot)["id"])


def _refuse_other_table(storage: TableStorage, facts: TableFacts, table_id: str) -> None:
    if table_id != facts.table_id:
        was_planned = was_planned_table(storage, facts, facts.version)
        other_commit = None
        if was_planned:
            other_commit = find_conflicting_commit(storage, (), after_version=facts.version)
        explanation = MADE_ANEW
        if was_planned is None:
            explanation = "the table was replaced, or dropped and created again, since it was planned"
        what = f"another writer won: the table was replaced ({other_commit})" if other_commit else explanation
        raise table_replaced(facts, table_id, what)


def table_dropped(facts: TableFacts) -> CommitConflict:
    """Return C701 for a table that is gone."""
    what = "the table was dropped since it was planned"
    return CommitConflict(what, where=facts.ref.identifier, help="plan again, or remove its policy")


def table_replaced(facts: TableFacts, table_id: str, what: str = MADE_ANEW) -> CommitConflict:
    """Return C701 for another table in the place of the planned one."""
    found, allowed = f"table id {table_id}", f"table id {facts.table_id}"
    return CommitConflict(what, where=facts.ref.identifier, found=found, allowed=allowed, help="plan again")


def was_planned_table(storage: TableStorage, facts: TableFacts, version: int) -> bool | None:
    """Whether the log on storage has the planned table's id at a version; None if it cannot be read."""
    try:
        return str(replay_version(storage, version).state.metadata["id"]) == facts.table_id
    except Exception:
        return None


def check_as_planned(
    storage: TableStorage, facts: TableFacts, metadata: dict[str, Any], protocol: dict[str, Any]
) -> None:
    """Refuse if the table was replaced, or if its schema, partitioning or protocol is not as the facts say.

    Looked at when a rewrite reads the table and again before each attempt to commit. Delta itself would commit across
    a protocol upgrade and, since it goes by version numbers, even into a table that was dropped and created again
    with as many versions.

    Raises:
        CommitConflict: C701, naming the other commit.
    """
    _refuse_other_table(storage, facts, metadata["id"])
    why = _difference(facts, metadata, protocol)
    if why is not None:
        raise lost_to(
            f"another writer won: {why}",
            storage,
            after_version=facts.version,
            where=facts.ref.identifier,
            help="nothing was committed and what was written was removed; the next plan takes the new state",
        )


def _difference(facts: TableFacts, metadata: dict[str, Any], protocol: dict[str, Any]) -> str | None:
    now, planned = metadata["schemaString"], facts.schema_json
    # Every append to a table with an identity column moves the high-water mark in the schema's text.
    if now != planned and without_state(json.loads(now)) != without_state(json.loads(planned)):
        return "the table's schema was changed"
    if tuple(metadata["partitionColumns"]) != facts.partition_columns:
        return "the table's partitioning was changed"
    if read_protocol(protocol) != facts.protocol:
        return "the table's protocol was changed"
    for key in PROPERTIES_WE_REST_ON:
        if metadata["configuration"].get(key) != facts.property_map.get(key):
            return f"{key} was switched"
    return None


def refuse_irregular_files(storage: TableStorage, paths: Iterable[str], where: str) -> None:
    """Refuse pipes, folders and devices where a data file is expected. Object stores have none of them.

    Args:
        storage: The table's storage.
        paths: Data files as the log names them. A missing file is found when it is read.
        where: The table, for the message.

    Raises:
        TableError: T422, something else lies in a file's place.
    """
    if storage.files.asks_by_request:
        return
    places = ((path, local_path(storage.uri(path))) for path in paths)
    others = [path for path, place in places if os.path.exists(place) and not os.path.isfile(place)]
    if others:
        noun = "live file of the table is not a regular file"
        if len(others) > 1:
            noun = "live files of the table are not regular files"
        raise TableError(
            f"{len(others)} {noun} but a pipe, a folder or a device", code="T422", where=where,
            found="\n".join(others[:MAX_NAMED]), help=f"bring the file back from a backup; {RESTORE_TAKES_BACK}",
        )  # fmt: skip


def refuse_empty_commits(log_files: Iterable[StoredFile], where: str) -> None:
    """Look at the commit files of a table's log before anything is written to it.

    Args:
        log_files: What lies in its folder.
        where: The table, for the message.

    Raises:
        TableError: T403, one of them is empty.
    """
    empty = sorted(file.name for file in log_files if COMMIT_NAME.match(file.name) and not file.size_bytes)
    if empty:
        raise log_damaged(where, f"{empty[0]} has no bytes: what its writer committed is lost")


def log_damaged(where: str, found: str) -> TableError:
    """Return T403: readers would pass over what is wrong with the log."""
    return log_unreadable("the table's log is damaged", where, found)


SINGLE_WRITER = "spark.maintainer.singleWriter"
"""Our own setting of a worker's session: ``singleWriter: true`` of maintainer.yml."""

_TWO_DRIVERS = "nothing is written here: two drivers may overwrite one another's commits"
_OVERWRITES = "nothing is written here: a commit of ours could overwrite the commit of another writer"
_ALONE = "`singleWriter: true` in maintainer.yml says that nobody else writes during a run"
_CANNOT = {
    NO_CONDITIONAL_WRITES: "the connector has no conditional writes (Hadoop 3.4.1 of Spark 4.0 has none), or "
    "`fs.s3a.create.conditional.enabled` is off",
    IGNORES_CONDITION: "the server writes over an object although it is asked not to (`If-None-Match: *`)",
}

_RENAMING_ON_GOOGLE = RENAMING_STORES | {
    f"{package}.AzureLogStore" for package in ("io.delta.storage", "org.apache.spark.sql.delta.storage")
}


def refuse_unsafe_log_store(
    location: str,
    setting: Callable[[str], str | None],
    where: str,
    exclusive_commits: Callable[[], str | None] = lambda: None,
) -> None:
    """Refuse to write where a commit may overwrite another's, unless nobody else writes meanwhile.

    Args:
        location: The table's root, a URI.
        setting: Returns a Spark setting, None where it is not set.
        where: The table, for the message.
        exclusive_commits: Makes commits to the table exclusive and says what writes them (``commit_store``). None
            where the JVM that commits is not ours to reach.

    Raises:
        Refused: A432 on S3 or Google's storage, A433 on a disk, where a version cannot be created exclusively.
    """
    if setting(SINGLE_WRITER) == "true":
        return
    code, what, unsafe = "A432", _TWO_DRIVERS, None
    match store_kind(location).created_once:
        case CreatedOnce.BY_CONDITION:
            unsafe = _unsafe_on_s3(exclusive_commits(), urlsplit(location).scheme, setting)
        case CreatedOnce.BY_LINK:
            code, what, unsafe = "A433", _OVERWRITES, _unsafe_on_disk(exclusive_commits())
        case CreatedOnce.BY_CONNECTOR:
            unsafe = _unsafe_on_google(setting)
        case CreatedOnce.BY_RENAME:
            pass
    if unsafe is not None:
        raise Refused(what, code=code, where=where, found=unsafe[0], help=unsafe[1])


def _unsafe_on_disk(store: str | None) -> tuple[str, str] | None:
    """Return what lets a commit replace another, and what to do about it; None where nothing does."""
    if store == NO_HARD_LINKS:
        return "the file system has no hard links", f"keep the table on a file system with hard links; {_ALONE}"
    if store in RENAMING_STORES:
        return f"spark.delta.logStore.class is {store}", f"remove that setting from the session; {_ALONE}"
    return None


def _unsafe_on_google(setting: Callable[[str], str | None]) -> tuple[str, str] | None:
    """As on a disk. Google's connector writes over what is there where a store renames; Delta's own creates."""
    way_out = (
        "remove that setting: Delta's own store for `gs://` never replaces a commit; or write `singleWriter: true` in "
        "maintainer.yml if nobody else writes during a run"
    )
    keys = ("spark.delta.logStore.gs.impl", "spark.delta.logStore.class")
    return next(((f"{key} is {setting(key)}", way_out) for key in keys if setting(key) in _RENAMING_ON_GOOGLE), None)


def _unsafe_on_s3(store: str | None, scheme: str, setting: Callable[[str], str | None]) -> tuple[str, str] | None:
    key = f"spark.delta.logStore.{scheme}.impl"
    if store in _CANNOT:
        found = _CANNOT[store or ""]
    elif store in RENAMING_STORES:
        found = f"spark.delta.logStore.class is {store}"
    elif store is None and not setting(key) and not setting("spark.delta.logStore.class"):
        found = f"{key} is not set, and maintainer cannot set it in this session"
    else:
        return None
    delta = installed("delta-spark") or DELTA_VERSION
    newer = "use Spark 4.1 or later, whose Hadoop has them; or " if store == NO_CONDITIONAL_WRITES else ""
    return found, (
        f"{newer}maintainer.yml: `spark: {{packages: [io.delta:delta-storage-s3-dynamodb:{delta}], conf: {{{key}: "
        "io.delta.storage.S3DynamoDBLogStore}}`, and the same for every writer; or `singleWriter: true` if nobody else "
        "writes during a run"
    )
