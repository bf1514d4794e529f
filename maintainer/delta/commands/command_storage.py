"""Read a table's log and look at its files through Spark's data sources: where paths lie on a Spark Connect server.

Each read is a job, so many commit files are read at once. A commit file never changes, so it is kept as long as this
object lives: for one operation on one table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import unquote

from maintainer.delta.commands.command_session import CommandSession
from maintainer.delta.storage.failures.engine_failures import describe
from maintainer.delta.storage.file_store import FileSource, StoredFile
from maintainer.delta.storage.log_paths import text_uri
from maintainer.delta.storage.table_log import TableLog
from maintainer.model.table.log_names import COMMIT_NAME

FILES_READ_AT_ONCE = 500


class SessionFiles(FileSource):
    """Implements ``FileSource`` through a session."""

    def __init__(self, session: CommandSession) -> None:
        self._session = session
        self._commits: dict[str, bytes] = {}

    def children(self, uri: str, *, after: str = "") -> dict[str, StoredFile]:
        """See ``FileSource``. Folders are not listed, nor files whose names begin with ``_`` or ``.``."""
        files = self.below(uri, recursive=False)
        return {uri: file for uri, file in files.items() if file.name > after}

    def below(self, uri: str, *, recursive: bool) -> dict[str, StoredFile]:
        """The files of a folder, or all below it, by URI; none if there is no folder. Spark follows symlinks."""
        try:
            rows = self._session.files(_path(uri), recursive=recursive).collect()
        except Exception as error:
            if any(failure.condition == "PATH_NOT_FOUND" for failure in describe(error)):
                return {}
            raise
        files = (StoredFile(text_uri(str(row[0])), int(row[1]), int(row[2]), False, False) for row in rows)
        return {file.uri: file for file in files}

    def read(self, uri: str, *, first_bytes: int | None = None) -> bytes:
        """See ``FileSource``."""
        body = next(self.read_many([StoredFile(uri, -1, 0, False, False)]))
        return body if first_bytes is None else body[:first_bytes]

    def read_many(self, files: Iterable[StoredFile]) -> Iterator[bytes]:
        """See ``FileSource``. Up to ``FILES_READ_AT_ONCE`` are read by one job."""
        wanted = list(files)
        for start in range(0, len(wanted), FILES_READ_AT_ONCE):
            group = wanted[start : start + FILES_READ_AT_ONCE]
            bodies = self._read([file.uri for file in group if file.uri not in self._commits])
            bodies.update((file.uri, self._commits[file.uri]) for file in group if file.uri in self._commits)
            self._commits.update((file.uri, bodies[file.uri]) for file in group if COMMIT_NAME.match(file.name))
            yield from (bodies[file.uri] for file in group)

    def _read(self, uris: list[str]) -> dict[str, bytes]:
        pieces: dict[str, dict[int, bytes]] = {uri: {} for uri in uris}
        for row in self._session.contents([_path(uri) for uri in uris]).collect() if uris else ():
            pieces[text_uri(str(row[0]))][int(row[1])] = bytes(row[2])
        missing = [uri for uri, parts in pieces.items() if not parts]
        if missing:
            raise FileNotFoundError(missing[0])
        return {uri: b"".join(parts[number] for number in sorted(parts)) for uri, parts in pieces.items()}


class CommandStorage(TableLog):
    """The storage of one table; ``root`` as Spark writes it (``file:/a b``: qualified, not percent-encoded)."""

    files: SessionFiles

    def __init__(self, session: CommandSession, root: str) -> None:
        super().__init__(SessionFiles(session), text_uri(root.rstrip("/")))

    @property
    def root_text(self) -> str:
        """The table's root as Spark's readers take it."""
        return _path(self.root_uri)

    def sizes(self, uris: Iterable[str]) -> dict[str, int]:
        """Bytes of every file below the root by its URI, as listed now, and of those of ``uris`` outside it.

        A shallow clone refers to some.
        """
        listed = self.files.below(self.root_uri, recursive=True)
        for folder in {uri.rpartition("/")[0] for uri in uris if not uri.startswith(self.root_uri + "/")}:
            listed.update(self.files.below(folder, recursive=False))
        return {uri: file.size_bytes for uri, file in listed.items()}


def _path(uri: str) -> str:
    """The path as Spark's readers take it."""
    return unquote(uri, errors="surrogateescape")
