"""Find and remove files that an attempt wrote and did not commit, also those of failed tasks, by their names.

Delta leaves the files of failed tasks behind, and names files at random. So each attempt gives its files a prefix that
no other writer has. Files with that prefix can be removed, and no others are.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
import uuid
from collections.abc import Iterable, Set
from functools import cache
from urllib.parse import unquote

from maintainer.delta.log.actions import to_physical
from maintainer.delta.storage.log_paths import partition_spelling
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.log_names import LOG_FOLDER
from maintainer.model.table.table_facts import PartitionValues, TableFacts
from maintainer.planning.selection.schema_columns import partition_types

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
MAX_FOLDERS = 5_000
LOOKS, QUIET_LOOKS, PAUSE_SECONDS = 20, 2, 0.25
"""Cancelled tasks end a moment later: looks go on until nothing new came twice, and are at most so many."""

EXACT_NAMES = 32
"""From so many on the folder is listed, which may hold a million files: as many are looked at side by side."""

_RUN_ID = re.compile(r"[0-9A-Za-z]+(?:-[0-9A-Za-z]+)*")


def prefix_of_batch(run_id: str, step_id: str, batch: int) -> str:
    """Return the prefix of the names of all data files that a run writes for one batch of one step.

    Another batch of the same run may have been committed, so its files must not have this prefix.

    Raises:
        ValueError: Not the id of a run.
    """
    if not _RUN_ID.fullmatch(run_id):
        raise ValueError(f"{run_id!r} is not the id of a run")
    digest = hashlib.sha256(f"{step_id}\0{batch}".encode("utf-8", "surrogatepass")).hexdigest()
    return f"part-{run_id}-{digest[:16]}-"


def prefix_of_attempt(stamp: CommitStamp) -> str:
    """Return a new prefix for the names of one attempt's data files."""
    return f"{prefix_of_batch(stamp.run_id, stamp.step_id, stamp.batch)}{uuid.uuid4().hex[:8]}-"


def folders_of(storage: TableStorage, facts: TableFacts, partitions: Iterable[PartitionValues]) -> list[str]:
    """Return the URIs of folders that a rewrite of these partitions may write to."""
    root = storage.root_uri
    folders = {root: None}
    if _has_random_folders(facts):
        folders.update(
            (uri, None) for uri, entry in storage.children(root).items() if entry.is_dir and "=" not in entry.name
        )
    spellings, children = _spellings(facts), cache(storage.children)  # partitions share the folders above them
    for values in dict.fromkeys(partitions):
        level = [root]
        for column, value in values:
            level = [
                uri
                for parent in level
                for uri, entry in children(parent).items()
                if entry.is_dir and not entry.is_symlink and _is_folder_of(entry.name, *spellings[column], value)
            ]
        folders.update((uri, None) for uri in level)
    return [uri for uri in folders if not uri.endswith(f"/{LOG_FOLDER}")][:MAX_FOLDERS]


def is_folder_of(storage: TableStorage, facts: TableFacts, uri: str, values: PartitionValues) -> bool:
    """Return whether a folder below the root is one of ``folders_of`` a partition; nothing is listed for it."""
    names = [unquote(name) for name in uri.removeprefix(f"{storage.root_uri}/").split("/")]
    if len(names) == 1 and "=" not in names[0]:
        is_known = _has_random_folders(facts) and names[0] != LOG_FOLDER
    else:
        spellings = _spellings(facts)
        is_known = len(names) == len(values) and all(
            _is_folder_of(name, *spellings[column], value) for name, (column, value) in zip(names, values, strict=True)
        )
    while is_known and uri != storage.root_uri and not storage.files.asks_by_request:  # a store has no links
        entry = storage.status(uri)
        is_known = entry is not None and entry.is_dir and not entry.is_symlink
        uri = uri.rpartition("/")[0]
    return is_known


def _spellings(facts: TableFacts) -> dict[str, tuple[Set[str], str]]:
    """What folders may call each partition column, and its type.

    With column mapping Delta 4.0 names folders by the names that columns have in files, later ones at random.
    """
    types, schema = partition_types(facts), json.loads(facts.schema_json)
    return {column: ({column, to_physical(schema, column)}, type_name) for column, type_name in types.items()}


def _is_folder_of(name: str, columns: Set[str], type_name: str, value: str | None) -> bool:
    """Whether a folder is that of a value, however its name spells it: writers spell one moment in several ways."""
    key, equals, text = unquote(name).partition("=")
    if key not in columns or not equals:
        return False
    if text == NULL_PARTITION:
        return not value
    return partition_spelling(text, type_name) == value


def _has_random_folders(facts: TableFacts) -> bool:
    properties = facts.property_map
    mapped = properties.get("delta.columnMapping.mode", "none").lower() != "none"
    return mapped or properties.get("delta.randomizeFilePrefixes", "false").lower() == "true"


def remove_files_named(
    storage: TableStorage, folders: Iterable[str], prefix: str, *, tasks_may_write: bool = True
) -> tuple[str, ...]:
    """Remove all files of the folders whose names begin with the prefix, and their checksums; return what is left.

    Args:
        storage: The table's storage.
        folders: Their URIs.
        prefix: For names that no commit refers to, nor ever will.
        tasks_may_write: Whether a task may still be ending, so that one look is not enough.
    """
    folders = list(folders)
    remaining: dict[str, None] = {}
    quiet = 0
    for look in range(LOOKS):
        uris, remaining = files_named(storage, folders, prefix), {}
        for uri in uris:
            try:
                storage.delete(uri)
            except Exception:
                # Returned to the caller; this failure must not hide the one that led here.
                remaining[uri] = None
        quiet = quiet + 1 if len(uris) == len(remaining) else 0
        if quiet == QUIET_LOOKS or look == LOOKS - 1 or not tasks_may_write:
            break
        time.sleep(PAUSE_SECONDS)
    return tuple(remaining)


def files_named(storage: TableStorage, folders: Iterable[str], prefix: str) -> list[str]:
    """Return the URIs of files in the folders whose names begin with the prefix, and of their checksums."""
    names = (prefix, f".{prefix}")
    return [
        uri
        for children in storage.files.children_of(list(folders)).values()
        for uri, entry in children.items()
        if not entry.is_dir and entry.name.startswith(names) and storage.is_below_root(uri)
    ]
