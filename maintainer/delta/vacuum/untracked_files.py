"""List what else lies in a table's folder: other tables, links out of it, and files that no log knows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice

from maintainer.delta.storage.file_store import FileStore, Listed, StoredFile, data_files, unheard
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.model.table.log_names import LOG_FOLDER
from maintainer.model.table.storage_facts import Listing, Protection, ProtectionReason
from maintainer.model.table.store_requests import LISTED_AT_ONCE, MOST_LISTED
from maintainer.units import named

MAX_LISTED = 5_000_000
"""Entries after which a listing is given up: then nothing untracked is deleted."""

PART = 10_000
"""Files that are looked at together."""

_OF_A_TABLE, _METADATA = (LOG_FOLDER, ".hoodie"), "metadata"
_OF_A_CHECKPOINT = frozenset({"commits", _METADATA, "offsets", "sources", "state"})
_SHOWN = 3


class ListedFolders:
    """Folders of a storage as they were when they were first asked for. For one look, which needs each once."""

    def __init__(self, files: FileStore) -> None:
        self.files = files
        self._listed: dict[str, dict[str, StoredFile]] = {}
        self._keeps = True

    def children_of(self, folders: Iterable[str], listed: Listed = unheard) -> dict[str, dict[str, StoredFile]]:
        """The children of the folders, and of all that were asked for before; see ``FileStore.children_of``."""
        if unknown := sorted(set(folders) - self._listed.keys()):
            self._listed |= self.files.children_of(unknown, listed)
        return self._listed

    def take_names(self, folders: Collection[str]) -> Iterator[str]:
        """The URIs of what lies in folders; what was listed is not kept any longer."""
        known, self._listed = self._listed, {}
        if not known.keys() >= set(folders):
            return self.files.names_in(folders)
        return (file.uri for folder in folders for file in data_files(known[folder].values()))

    def parts_there(self, uris: Collection[str], listed: Listed = unheard) -> Iterator[dict[str, StoredFile]]:
        """Yield the entries among many URIs that are there, by URI, part by part: so few are in memory at once.

        Args:
            uris: Asked quickly whether a URI is among them.
            listed: Told the URIs of what was listed, part by part, from any thread.
        """
        if self.files.asks_by_request and len(uris) <= MOST_LISTED:
            yield self.look_many(uris, listed)
            return
        self._keeps = False
        found = self.files.there(uris)
        while part := {file.uri: file for file in islice(found, PART)}:
            listed(part)
            yield part

    def look_many(self, uris: Collection[str], listed: Listed = unheard) -> dict[str, StoredFile]:
        """The entries among the URIs that are there; each is looked at alone where that costs no request."""
        if not self.files.asks_by_request:
            return self.files.look_many(uris)
        if not self._keeps:  # what is in a folder of very many files is asked for one by one
            return {file.uri: file for file in self.files.abreast(self.files.status, list(uris)) if file is not None}
        children = self.children_of((uri.rpartition("/")[0] for uri in uris), listed)
        found = ((uri, children[uri.rpartition("/")[0]].get(uri)) for uri in uris)
        return {uri: file for uri, file in found if file is not None}


class Fences:
    """Find folders below a table's root that are not its own: behind a link, or of another table."""

    def __init__(self, storage: TableStorage, listed: ListedFolders) -> None:
        self._storage = storage
        self._listed = listed
        self._why: dict[str, tuple[ProtectionReason, str] | None] = {storage.root_uri: None}

    def look_at(self, folders: Iterable[str]) -> None:
        """Check many folders at once: on object storage each check is a request."""
        unknown = sorted(
            {ancestor for folder in folders for ancestor in self._chain(folder)} - self._why.keys(), key=len
        )
        may_be_links = unknown if self._listed.files.has_links else []
        found = self._listed.look_many(
            [*may_be_links, *(f"{folder}/{marker}" for folder in unknown for marker in (*_OF_A_TABLE, _METADATA))]
        )
        for folder in unknown:  # shorter ones, so parents, first
            self._why[folder] = self._why[folder.rpartition("/")[0]] or self._own_why(folder, found)

    def why(self, folder: str) -> tuple[ProtectionReason, str] | None:
        """Return why a folder is not the table's own, and the folder where that begins; None where it is."""
        if folder not in self._why:
            self.look_at([folder])
        return self._why[folder]

    def _chain(self, folder: str) -> list[str]:
        """The folder and all above it up to the root, which is left out."""
        chain = []
        while len(folder) > len(self._storage.root_uri):
            chain.append(folder)
            folder = folder.rpartition("/")[0]
        return chain

    def _own_why(self, folder: str, found: dict[str, StoredFile]) -> tuple[ProtectionReason, str] | None:
        if folder in found and found[folder].is_symlink:
            return (ProtectionReason.SYMLINK, folder)
        if any(f"{folder}/{marker}" in found for marker in _OF_A_TABLE):
            return (ProtectionReason.NESTED_TABLE, folder)
        metadata = found.get(f"{folder}/{_METADATA}")
        if metadata is not None and metadata.is_dir and _is_iceberg(self._storage.children(f"{folder}/metadata")):
            return (ProtectionReason.NESTED_TABLE, folder)
        return None


def _is_iceberg(children: dict[str, StoredFile]) -> bool:
    return any(child.name.endswith(".metadata.json") for child in children.values())


@dataclass(slots=True)
class Untracked:
    """Old regular files below the root that the log does not mention, and figures of the listing."""

    files: list[StoredFile] = field(default_factory=list)
    protections: list[Protection] = field(default_factory=list)
    listing: Listing = field(default_factory=lambda: Listing(0, 0, 0))


def list_untracked(
    storage: TableStorage,
    is_known: Callable[[str], bool],
    *,
    partition_columns: tuple[str, ...],
    changed_before_ms: int,
    max_listed: int = MAX_LISTED,
) -> Untracked:
    """List the table's folder, one folder at a time, for files that no log knows.

    Names that Delta hides (``_delta_log``, ``_symlink_format_manifest``, ``.hoodie``, ...) are not looked at, except
    ``_change_data``. Links, folders of other tables and checkpoints of streams are reported and not entered.

    Args:
        storage: The table.
        is_known: Tells whether the log names a file, by its URI.
        partition_columns: Folders of partitions may begin with ``_``, if the column does.
        changed_before_ms: Files changed later are too young.
        max_listed: Bound; beyond it the listing is given up and names nothing.
    """
    untracked = Untracked()
    by_reason: dict[_Foreign, list[str]] = defaultdict(list)
    folders, num_folders, num_files, num_requests = [storage.root_uri], 0, 0, 0
    while folders:
        folder = folders.pop()
        children = storage.children(folder)
        num_folders += 1
        num_requests += max(1, -(-len(children) // LISTED_AT_ONCE))
        num_files += sum(not child.is_dir for child in children.values())
        if num_files + num_folders > max_listed:
            stopped = f"the listing was given up after {max_listed:,} entries"
            return Untracked([], [], Listing(num_folders, num_files, num_requests, stopped))
        is_root = folder == storage.root_uri
        if is_root:
            children = _without_foreign(children, by_reason)
        elif (why := _whose(storage, children)) is not None:
            by_reason[why].append(folder[len(storage.root_uri) + 1 :])
            continue
        for uri, child in children.items():
            if child.is_symlink:
                by_reason[_Foreign.LINK].append(uri[len(storage.root_uri) + 1 :])
            elif is_hidden(child.name, partition_columns):
                continue
            elif child.is_dir:
                folders.append(uri)
            elif not is_known(uri) and child.modification_time_ms < changed_before_ms:
                untracked.files.append(child)
    untracked.protections = [_protection_of(foreign, paths) for foreign, paths in sorted(by_reason.items())]
    untracked.listing = Listing(num_folders, num_files, num_requests)
    return untracked


class _Foreign(StrEnum):
    """What is not the table's own, in words for people."""

    LINK = "a link is not followed"
    TABLE = "a folder holds another table"
    CHECKPOINT = "a folder holds the checkpoint of a stream"


def _whose(storage: TableStorage, children: dict[str, StoredFile]) -> _Foreign | None:
    """Say by its children what a foreign folder is; None for the table's own."""
    names = {child.name: child for child in children.values()}
    if LOG_FOLDER in names or ".hoodie" in names:
        return _Foreign.TABLE
    metadata = names.get(_METADATA)
    if metadata is not None and metadata.is_dir and _is_iceberg(storage.children(metadata.uri)):
        return _Foreign.TABLE
    return _Foreign.CHECKPOINT if _is_checkpoint(names.keys()) else None


def _is_checkpoint(names: Collection[str]) -> bool:
    return all(name in names for name in ("offsets", "commits", _METADATA))


def _without_foreign(children: dict[str, StoredFile], by_reason: dict[_Foreign, list[str]]) -> dict[str, StoredFile]:
    """Leave out of the root what is another table's or a stream's. Delta's own vacuum hides ``metadata``, too."""
    is_checkpoint = _is_checkpoint({child.name for child in children.values()})
    foreign = _OF_A_CHECKPOINT if is_checkpoint else {_METADATA}
    found = {child.name for child in children.values() if child.name in foreign and (child.is_dir or is_checkpoint)}
    if found:
        by_reason[_Foreign.CHECKPOINT if is_checkpoint else _Foreign.TABLE].extend(sorted(found))
    return {uri: child for uri, child in children.items() if child.name not in found}


def is_hidden(name: str, partition_columns: tuple[str, ...]) -> bool:
    """Whether Delta's own vacuum does not look at a name, either."""
    if not name.startswith(("_", ".")):
        return False
    return not name.startswith(("_change_data", "_delta_index", *(f"{column}=" for column in partition_columns)))


def _protection_of(foreign: _Foreign, paths: list[str]) -> Protection:
    why = ProtectionReason.SYMLINK if foreign is _Foreign.LINK else ProtectionReason.NESTED_TABLE
    return Protection(why, f"{foreign}: {named(sorted(paths), _SHOWN)}", 0)
