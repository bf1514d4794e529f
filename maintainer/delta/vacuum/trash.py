"""Move files to a table's trash instead of deleting them, bring them back, and empty the trash.

A bucket that keeps versions is its own trash: there a run's files come back when its delete markers are removed.

The trash of a table lies beside its real folder: ``.maintainer-trash/<name>-<hash of its id>/<run>/``, with a manifest
of what was moved and how long it is kept. So every path to the table finds it, and it moves with the parent folder.
Only files that a manifest names are ever deleted.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from maintainer.delta.storage.failures.engine_failures import first_line_of, message_of
from maintainer.delta.storage.file_identity import canonical_uri
from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.delta.vacuum.file_deletion import PlannedFiles, PresentFiles
from maintainer.delta.vacuum.untracked_files import ListedFolders
from maintainer.errors import TableError
from maintainer.model.run.receipts import UndeleteReceipt
from maintainer.model.table.storage_facts import MarkedFile, TrashedRun
from maintainer.model.table.store_kinds import store_kind
from maintainer.units import count_of

FOLDER = ".maintainer-trash"
MANIFEST = "manifest.json"
MAX_RUNS_LOOKED_AT = 1000
"""Whose manifests a plan reads, the oldest first."""

MAX_RUNS_NAMED = 20


@dataclass(frozen=True, slots=True)
class TrashedFile:
    """One moved file: where it lay (relative to the table's root, percent-encoded), its size and its time."""

    path: str
    size_bytes: int
    modification_time_ms: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """What one run moved. The files of one that is written are gone through once."""

    run_id: str
    location: str
    table_id: str
    keep_until_ms: int
    files: Iterable[TrashedFile]

    def to_bytes(self) -> bytes:
        document = {"run": self.run_id, "location": self.location, "table_id": self.table_id}
        written = io.BytesIO()
        written.write(json.dumps({**document, "keep_until_ms": self.keep_until_ms}).encode()[:-1] + b', "files": [')
        for number, file in enumerate(self.files):
            fields = [file.path, file.size_bytes, file.modification_time_ms]
            written.write(b", " * bool(number) + json.dumps(fields).encode())
        return written.getvalue() + b"]}"

    @staticmethod
    def from_bytes(data: bytes) -> Manifest | None:
        """Read it back; None for anything else."""
        try:
            fields: dict[str, Any] = json.loads(data)
            files = tuple(TrashedFile(str(path), int(size), int(time)) for path, size, time in fields["files"])
            if any(".." in unquote(file.path).split("/") or unquote(file.path).startswith("/") for file in files):
                return None
            run, location, table_id = (str(fields[name]) for name in ("run", "location", "table_id"))
            return Manifest(run, location, table_id, int(fields["keep_until_ms"]), files)
        except (ValueError, KeyError, TypeError):
            return None


def _place_of_trash(storage: TableStorage) -> tuple[str, str]:
    """The folder that holds the trash of all tables beside this one, and the table's own name there."""
    parent, _, name = canonical_uri(storage.root_uri).rpartition("/")
    return f"{parent}/{FOLDER}", name


def trash_uri(storage: TableStorage, table_id: str) -> str:
    """Where the trash of a table lies."""
    parent, name = _place_of_trash(storage)
    return f"{parent}/{name}-{hashlib.sha256(table_id.encode()).hexdigest()[:8]}"


def write_manifest(storage: TableStorage, manifest: Manifest, where: str) -> str:
    """Write the manifest of the files to move; return the run's folder in the trash.

    Raises:
        TableError: T432, it cannot be written; nothing was moved.
    """
    trash = trash_uri(storage, manifest.table_id)
    folder = f"{trash}/{manifest.run_id}"
    uri = f"{folder}/{MANIFEST}"
    try:
        # A second try of the same run moves the rest of the same files.
        if storage.status(uri) is None:
            storage.files.write(uri, manifest.to_bytes())
    except Exception as error:
        what = "the trash cannot be written; nothing was deleted"
        way_out = f"give this user the right to write {trash}, or remove `vacuum.trash`"
        raise TableError(what, code="T432", where=where, found=message_of(error), help=way_out) from error
    return folder


@dataclass(frozen=True, slots=True)
class Emptied:
    """Files deleted from the trash; ``problems`` are files that could not be deleted, each with the reason.

    ``stopped`` says why others were not tried.
    """

    num_files: int
    size_bytes: int
    problems: tuple[str, ...]
    stopped: str | None = None


def trash_target(folder: str, path: str) -> str:
    """Where a file of the table goes in a run's folder."""
    return f"{folder}/files/{path}"


def expired_trash(storage: TableStorage, now_ms: int) -> tuple[TrashedRun, ...]:
    """Return runs with expired files in the trash, oldest first."""
    if not store_kind(storage.root_uri).renames_cheaply:
        return ()
    expired = []
    for folder in _run_folders(storage)[:MAX_RUNS_LOOKED_AT]:
        manifest = _manifest(storage, folder)
        if manifest is None or manifest.keep_until_ms > now_ms:
            continue
        files = [file for file in manifest.files if storage.status(trash_target(folder, file.path)) is not None]
        size_bytes = sum(file.size_bytes for file in files)
        if files:
            expired.append(TrashedRun(manifest.run_id, folder, len(files), size_bytes, manifest.keep_until_ms))
    return tuple(sorted(expired, key=lambda run: (run.keep_until_ms, run.run_id)))


def only_in_trash(storage: TableStorage, runs: Sequence[TrashedRun]) -> dict[str, StoredFile]:
    """Return the files of runs that are in the trash and not in the table, by where they lay."""
    found: dict[str, StoredFile] = {}
    for run in runs:
        manifest = _manifest(storage, run.folder)
        for file in manifest.files if manifest is not None else ():
            uri, trashed = f"{storage.root_uri}/{file.path}", storage.status(trash_target(run.folder, file.path))
            if trashed is not None and storage.status(uri) is None:
                found[uri] = StoredFile(uri, file.size_bytes, file.modification_time_ms, False, False)
    return found


def empty(
    storage: TableStorage, runs: Sequence[TrashedRun], now_ms: int, stop_reason: Callable[[], str | None]
) -> Emptied:
    """Delete the files in the manifests of the runs, if they are expired; before each file it asks whether to stop."""
    num_files = size_bytes = 0
    problems: list[str] = []
    folders = set(_run_folders(storage)) if runs else set()
    for run in runs:
        manifest = _manifest(storage, run.folder) if run.folder in folders else None
        if manifest is None or manifest.keep_until_ms > now_ms:
            continue
        known_problems = len(problems)
        for file in manifest.files:
            if (stopped := stop_reason()) is not None:
                return Emptied(num_files, size_bytes, tuple(problems), stopped)
            try:
                deleted = storage.delete(trash_target(run.folder, file.path))
            except Exception as error:
                problems.append(f"{FOLDER}: {file.path} ({first_line_of(error)})")
                continue
            if deleted:
                num_files += 1
                size_bytes += file.size_bytes
        if len(problems) == known_problems:  # without its manifest what is still there is lost to everybody
            _remove_folders(storage, run.folder, manifest)
    return Emptied(num_files, size_bytes, tuple(problems))


def undelete(
    storage: TableStorage, table_id: str, run_id: str, where: str, deleted: Sequence[MarkedFile] = ()
) -> UndeleteReceipt:
    """Bring a run's files back; see ``TableWriter.undelete``."""
    if not store_kind(storage.root_uri).renames_cheaply:
        return _uncover(storage, run_id, where, deleted)
    folder = f"{trash_uri(storage, table_id)}/{run_id}"
    folders = _run_folders(storage)
    manifest = _manifest(storage, folder) if folder in folders else None
    if manifest is None or manifest.table_id != table_id:
        runs = sorted(folder.rpartition("/")[2] for folder in folders)[-MAX_RUNS_NAMED:]
        raise TableError(
            "there is nothing of this run in the table's trash",
            code="T430", where=where, found=run_id,
            allowed=", ".join(runs) or f"no run: {trash_uri(storage, table_id)} is empty",
            help="only `vacuum.trash` keeps files, and only until its time is over",
        )  # fmt: skip
    restored: list[TrashedFile] = []
    refused: list[str] = []
    for file in manifest.files:
        problem = _restore(storage, folder, file)
        if problem is None:
            restored.append(file)
        else:
            refused.append(f"{file.path} ({problem})")
    if not refused:
        _remove_folders(storage, folder, manifest)
    return UndeleteReceipt(run_id, len(restored), sum(file.size_bytes for file in restored), tuple(refused))


def _uncover(storage: TableStorage, run_id: str, where: str, deleted: Sequence[MarkedFile]) -> UndeleteReceipt:
    """Remove a run's delete markers. A file that has none in the record is named where it is not there.

    A kill between a request's deletion and its record leaves none of its files: what hides them is named, for a person.
    """
    if not deleted:
        raise TableError(
            "no record of this run names a file of the table that it was to delete",
            code="T430", where=where, found=run_id, help=f"`maintainer history {where}` names the runs that deleted",
        )  # fmt: skip
    files = PlannedFiles(storage, deleted)
    hiding = storage.files.hiding([uri for uri, file in files.items() if file.marker is None])
    if not hiding and all(file.marker is None for file in deleted):
        raise TableError(
            "no delete marker is recorded of what this run deleted: where the bucket kept no versions, it is gone",
            code="T431", where=where, found=f"{run_id}, {count_of(len(deleted), 'file')}",
            help="switch on versioning of an S3 bucket before the next vacuum; if it was on, remove the markers of the "
            "files that plan.json of the run names with the store's tools, after setting `suspend:` for the table",
        )  # fmt: skip
    stayed = storage.files.uncover({uri: file.marker for uri, file in files.items() if file.marker is not None})
    there = PresentFiles(files)
    for part in ListedFolders(storage.files).parts_there(files):
        for stored in part.values():
            there.add(stored)
    back, refused = list[MarkedFile](), list[str]()
    for uri, file in files.items():
        found = there.get(uri)
        if found is None:
            why = "no delete marker of it is recorded" if file.marker is None else "something still hides it"
            if uri in hiding:
                why += f"; {hiding[uri]} hides it, and the store's tools can remove that if it is this run's"
            refused.append(f"{file.path} ({stayed.get(uri, why)})")
        elif found.size_bytes != file.size_bytes:
            refused.append(f"{file.path} (there is another file in its place)")
        elif file.marker is not None:
            back.append(file)
    return UndeleteReceipt(run_id, len(back), sum(file.size_bytes for file in back), tuple(refused))


def _restore(storage: TableStorage, folder: str, file: TrashedFile) -> str | None:
    """Move one file back; return the problem, or None."""
    source, goal = trash_target(folder, file.path), f"{storage.root_uri}/{file.path}"
    status = storage.status(source)
    if status is None:
        back = storage.status(goal)
        if back is not None and _same(back, file):
            return None
        return "it is no longer in the trash"
    if not _same(status, file):
        return f"it has {status.size_bytes:,} bytes in the trash, {file.size_bytes:,} were moved there"
    try:
        storage.files.move(source, goal)
    except FileExistsError:
        there = storage.status(goal)
        if there is None or there.device_and_inode is None or there.device_and_inode != status.device_and_inode:
            return "there is a file in its place"
        with contextlib.suppress(Exception):  # a kill left it under both names: it is back
            storage.delete(source)
    except Exception as error:
        return first_line_of(error)
    return None


def _same(status: StoredFile, file: TrashedFile) -> bool:
    return not status.is_dir and not status.is_symlink and status.size_bytes == file.size_bytes


_OF_A_TABLE = re.compile("[0-9a-f]{8}")


def _run_folders(storage: TableStorage) -> list[str]:
    """Return the folders of runs in the trash of the table, and of earlier tables in its place."""
    parent, name = _place_of_trash(storage)
    own = f"{parent}/{name}-"
    uris = (entry.uri for entry in _folders_in(storage, parent) if entry.uri.startswith(own))
    tables = [uri for uri in uris if _OF_A_TABLE.fullmatch(uri, len(own))]
    return sorted(entry.uri for table in tables for entry in _folders_in(storage, table))


def _folders_in(storage: TableStorage, folder: str) -> list[StoredFile]:
    return [entry for entry in storage.children(folder).values() if entry.is_dir and not entry.is_symlink]


def _manifest(storage: TableStorage, folder: str) -> Manifest | None:
    try:
        return Manifest.from_bytes(storage.files.read(f"{folder}/{MANIFEST}"))
    except FileNotFoundError:
        return None


def _remove_folders(storage: TableStorage, folder: str, manifest: Manifest) -> None:
    """Remove a run's empty folders; files that no manifest names stay."""
    folders = {folder, f"{folder}/files"}
    for file in manifest.files:
        parent = trash_target(folder, file.path).rpartition("/")[0]
        while len(parent) > len(folder):
            folders.add(parent)
            parent = parent.rpartition("/")[0]
    inner = sorted(folders - {folder}, key=len, reverse=True)
    for one_folder in (*inner, f"{folder}/{MANIFEST}", folder):
        with contextlib.suppress(Exception):  # not empty: it holds a file of others
            storage.delete(one_folder)
