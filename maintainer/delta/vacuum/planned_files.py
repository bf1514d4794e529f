"""The files that a deletion is to take, and what was seen of each: of a million of them some 200 bytes each."""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.storage.log_paths import short_uri, whole_uri
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.model.table.table_facts import RemovedFile


class PlannedFiles(Mapping[str, RemovedFile]):
    """The files of a plan by URI, in its order. URIs are made anew each time: a key is the plan's own text."""

    def __init__(self, storage: TableStorage, files: Sequence[RemovedFile]) -> None:
        self._root_uri = storage.root_uri
        self._files = files
        self.num_files = len(files)
        self._numbers: dict[str, int] = {}
        for number, file in enumerate(files):
            key = short_uri(self._root_uri, storage.uri(file.path))
            self._numbers[file.path if file.path == key else key] = number

    def __getitem__(self, uri: str) -> RemovedFile:
        return self._files[self._numbers[short_uri(self._root_uri, uri)]]

    def __iter__(self) -> Iterator[str]:
        return (whole_uri(self._root_uri, key) for key in self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def number_of(self, uri: str) -> int | None:
        """The place of a file in the plan; None for another file."""
        return self._numbers.get(short_uri(self._root_uri, uri))

    def among(self, uris: Iterable[str]) -> NamesSeen:
        """Keep names, of these files as one bit each."""
        seen = NamesSeen(self, bytearray(len(self._files)), set())
        for uri in uris:
            number = self.number_of(uri)
            if number is None:
                seen.others.add(uri)
            else:
                seen.flags[number] = 1
        return seen


@dataclass(frozen=True, slots=True)
class NamesSeen(Container[str]):
    """Names on storage: which planned files are among them, and all others."""

    planned: PlannedFiles
    flags: bytearray
    others: set[str]

    def __contains__(self, uri: object) -> bool:
        number = self.planned.number_of(str(uri))
        return uri in self.others if number is None else bool(self.flags[number])


class FilesSeen(Mapping[str, StoredFile]):
    """Those planned files that were seen on storage, each as it was, by URI in the plan's order."""

    def __init__(self, planned: PlannedFiles) -> None:
        self._planned = planned
        self._is_seen, self._has_identity = bytearray(planned.num_files), bytearray(planned.num_files)
        self._figures = array("q", bytes(16 * planned.num_files))
        self._identities = array("Q", bytes(16 * planned.num_files))

    def __getitem__(self, uri: str) -> StoredFile:
        number = self._planned.number_of(uri)
        if number is None or not self._is_seen[number]:
            raise KeyError(uri)
        place = slice(2 * number, 2 * number + 2)
        size_bytes, modification_time_ms = self._figures[place]
        device, inode = self._identities[place]
        identity = (device, inode) if self._has_identity[number] else None
        return StoredFile(uri, size_bytes, modification_time_ms, False, False, identity)

    def __iter__(self) -> Iterator[str]:
        return (uri for uri in self._planned if uri in self)

    def __len__(self) -> int:
        return self._is_seen.count(1)

    def add(self, file: StoredFile) -> None:
        """Keep how a planned file is now; it is no folder and no link."""
        number = self._planned.number_of(file.uri)
        assert number is not None, file.uri
        place = slice(2 * number, 2 * number + 2)
        self._is_seen[number] = 1
        self._figures[place] = array("q", (file.size_bytes, file.modification_time_ms))
        if file.device_and_inode is not None:
            self._has_identity[number] = 1
            self._identities[place] = array("Q", file.device_and_inode)
