"""Compare the live files that a deletion goes by with those that a second reader of the log finds: Delta Kernel.

It reads commits and checkpoints itself and shares no code with ``delta/log/replay``: a mistake there must not cost a
live file. What Kernel cannot read is read by Delta's own snapshot.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import unquote

from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.storage.failures.engine_failures import is_store_silent
from maintainer.delta.storage.file_identity import NeededFiles
from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.errors import CommitConflict, MaintainerError, Refused
from maintainer.model.table.log_names import LOG_FOLDER
from maintainer.units import count_of, format_size

MAX_NAMED = 5

_LIVE, _LATE = "is live", "was removed later than the plan says"
_LOG = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")

LiveFile = tuple[str, str, int]
"""Path as the log has it, unique id of the deletion vector, bytes."""


@dataclass(frozen=True, slots=True)
class SecondReader:
    """A reader for messages by its name; ``read`` takes a storage, a version and a moment (milliseconds).

    It yields what makes up the version, ``metaData`` and live ``add`` actions, and its removals since the moment.
    """

    name: str
    read: Callable[[TableStorage, int, int], Iterator[Mapping[str, Any]]]


def second_readers(jvm: DeltaJvm) -> tuple[SecondReader, ...]:
    """Return the readers of production: Kernel, then Spark for what it cannot read. They read all anew."""

    def by_spark(storage: TableStorage, version: int, removed_since_ms: int) -> Iterator[Mapping[str, Any]]:
        jvm.forget_log(storage.root_uri)
        snapshot = jvm.snapshot_at(jvm.log_at(storage.root_uri), version)
        yield from ({"add": add} for add in jvm.scan_files(snapshot))
        yield from ({"remove": remove} for remove in jvm.tombstones(snapshot, removed_since_ms))

    return (
        SecondReader("Delta Kernel", lambda storage, *moment: jvm.kernel_actions(storage.folder, *moment)),
        SecondReader("Delta's snapshot", by_spark),
    )


@dataclass(frozen=True, slots=True)
class LiveVersion:
    """A version of a table as our reader sees it; ``files`` yields the live ones each time that it is called."""

    where: str
    table_id: str
    version: int
    files: Callable[[], Iterable[LiveFile]]


@dataclass(frozen=True, slots=True)
class Going:
    """The files that are to be deleted, by URI, and before when they must have been removed.

    ``copies`` are in a trash, and nowhere else: they only must not be live.
    """

    files: Mapping[str, StoredFile]
    removed_before_ms: int
    copies: Mapping[str, StoredFile] = field(default_factory=dict)


@dataclass(slots=True)
class _Files:
    """Files of one reader that the other has not: how many, their bytes, and the first of them."""

    num_files: int = 0
    size_bytes: int = 0
    named: list[str] = field(default_factory=list)

    def add(self, file: LiveFile, *, named: bool = True) -> None:
        self.num_files += 1
        self.size_bytes += file[2]
        if named and len(self.named) < MAX_NAMED:
            self.named.append(f"{file[0]} ({file[2]:,} bytes{', with a deletion vector' if file[1] else ''})")

    def __str__(self) -> str:
        return f"{count_of(self.num_files, 'file')}, {format_size(self.size_bytes)} ({self.size_bytes:,} bytes)"


def check_second_reading(
    readers: Sequence[SecondReader], storage: TableStorage, ours: LiveVersion, going: Going
) -> None:
    """Let a second reader confirm the live files, and that none of the files that go is live or was removed later.

    One pass over the log, piece by piece. Of each of our files and of each that goes a number is kept: about 100 bytes.

    Args:
        readers: The first that can read the version is asked.
        storage: The table's.
        ours: What the deletion goes by.
        going: What is to be deleted.

    Raises:
        Refused: A452, the readers differ, or one of the files is needed.
        CommitConflict: C701, it is another table.
    """
    _asked(readers, lambda reader: _compare(reader, storage, ours, going))


def find_name(readers: Sequence[SecondReader], storage: TableStorage, version: int, beginning: str) -> str | None:
    """Return a path of a live file or of a removal whose last name begins so; None where there is none."""

    def found_by(reader: SecondReader) -> str | None:
        bodies = (body for action in reader.read(storage, version, 0) for body in action.values() if "path" in body)
        return next((str(body["path"]) for body in bodies if _name_of(body["path"]).startswith(beginning)), None)

    return _asked(readers, found_by)


def _asked(readers: Sequence[SecondReader], ask: Callable[[SecondReader], _Answer]) -> _Answer:
    """Return the answer of the first reader that can read the log. A store that gives no answer is not asked twice."""
    for reader in readers[:-1]:
        try:
            return ask(reader)
        except MaintainerError:
            raise
        except Exception as error:
            if is_store_silent(error):
                raise
            _LOG.info("%s cannot read the log, so %s is asked: %s", reader.name, readers[-1].name, error)
    return ask(readers[-1])


def _compare(reader: SecondReader, storage: TableStorage, ours: LiveVersion, going: Going) -> None:
    names = frozenset(hash(file.name) for files in (going.files, going.copies) for file in files.values())
    here, there, only_here, only_there = _Files(), _Files(), _Files(), _Files()
    unseen: set[int] = set()
    for file in ours.files():
        here.add(file, named=False)
        unseen.add(hash(file))
    places: dict[str, str] = {}
    for action in reader.read(storage, ours.version, going.removed_before_ms):
        if "metaData" in action and action["metaData"]["id"] != ours.table_id:
            raise CommitConflict(
                "the table was dropped and created again since it was planned",
                where=ours.where, found=f"table id {action['metaData']['id']}", allowed=f"table id {ours.table_id}",
                help="nothing was deleted; plan again",
            )  # fmt: skip
        if "add" in action:
            file = _live_file(action["add"])
            there.add(file, named=False)
            if hash(file) in unseen:
                unseen.remove(hash(file))
            else:
                only_there.add(file)
            places.update(dict.fromkeys(_places(storage, action["add"], names), _LIVE))
        elif "remove" in action:
            places = dict.fromkeys(_places(storage, action["remove"], names), _LATE) | places
    if unseen:
        for file in ours.files():
            if hash(file) in unseen:
                only_here.add(file)
    if unseen or only_there.num_files:
        raise _disagreement(
            reader, ours,
            f"{here} in our reading, {there} in that of {reader.name}\n"
            + "\n".join(f"only in {which}: {name}" for which, files in
                        (("ours", only_here), (f"that of {reader.name}", only_there)) for name in files.named),
            "the same live files in both",
        )  # fmt: skip
    live = {uri: why for uri, why in places.items() if why == _LIVE}
    if needed := _needed(storage, going.files, places) + _needed(storage, going.copies, live):
        raise _disagreement(reader, ours, "\n".join(needed[:MAX_NAMED]), "files that no version needs any more")


def _live_file(add: Mapping[str, Any]) -> LiveFile:
    vector = add.get("deletionVector")
    if not vector:
        return str(add["path"]), "", int(add["size"])
    offset = vector.get("offset")
    identity = f"{vector['storageType']}{vector['pathOrInlineDv']}" + ("" if offset is None else f"@{offset}")
    return str(add["path"]), identity, int(add["size"])


def _places(storage: TableStorage, body: Mapping[str, Any], names: frozenset[int]) -> set[str]:
    """Where an action's files lie, if their last names are among those: data file and deletion vector."""
    path, vector = str(body["path"]), body.get("deletionVector")
    found = set(storage.readings(path)) if "?" in path or "#" in path or hash(_name_of(path)) in names else set()
    if vector and vector["storageType"] != "i":
        found.add(storage.vector_uri(vector["storageType"], vector["pathOrInlineDv"]))
    return {uri for uri in found if hash(_name_of(uri)) in names}


def _name_of(path: str) -> str:
    """The last part of a path or a URI, decoded. The first reader has a rule of its own for it."""
    return unquote(path.rpartition("/")[2], errors="surrogateescape")


def _needed(storage: TableStorage, files: Mapping[str, StoredFile], places: Mapping[str, str]) -> list[str]:
    """Return which of the files lie in one of these places, under any name, and why each is needed."""
    known = NeededFiles()
    known.add(places, root_uri=storage.root_uri)
    needs = ((uri, known.need_of(file)) for uri, file in files.items())
    return [f"{uri} {places[need.uri]}, as {need.uri}" for uri, need in needs if need is not None]


def _disagreement(reader: SecondReader, ours: LiveVersion, found: str, allowed: str) -> Refused:
    return Refused(
        f"nothing was deleted: {reader.name} reads the log otherwise than maintainer does",
        code="A452",
        where=f"{ours.where}@{ours.version}",
        found=found.strip(),
        allowed=allowed,
        help=f"delete no file of this table by hand. If something else changes files in its {LOG_FOLDER}, stop that "
        "and plan again; if not, one of the two readers is wrong: report it with this message",
    )
