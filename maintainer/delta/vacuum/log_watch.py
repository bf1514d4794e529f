"""Notice that the log which a deletion goes by is no longer the one that was read."""

from __future__ import annotations

from collections.abc import Mapping

from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.storage.table_log import LogEntry, commits_among
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.errors import CommitConflict
from maintainer.model.table.log_names import LOG_FOLDER, SIDECAR_FOLDER, is_of_log

MAX_NAMED = 5


class LogWatch:
    """The commits and checkpoints of a table as its log's folder was listed, and what came since."""

    def __init__(self, storage: TableStorage, where: str, listed: Mapping[str, StoredFile]) -> None:
        self._storage = storage
        self._where = where
        self._listed: dict[str, StoredFile] | None = _of_log(storage, listed)
        self.entries = commits_among(self._listed.values())
        self._seen = self.entries[-1].version if self.entries else -1

    def newer(self) -> list[LogEntry]:
        """Return commits that came since the last call; the first call lists all anew.

        Raises:
            CommitConflict: C701, at the first call: what was there is not as it was, by size, time and tag.
        """
        if self._listed is None:
            entries = self._storage.commits(after_version=self._seen)
        else:
            now = _of_log(self._storage, self._storage.log_files())
            self._check_same(self._listed, now)
            self._listed = None
            entries = commits_among(now.values(), after_version=self._seen)
        self._seen = entries[-1].version if entries else self._seen
        return entries

    def _check_same(self, before: dict[str, StoredFile], now: dict[str, StoredFile]) -> None:
        first = next((entry.version for entry in commits_among(now.values())), None)
        changed = [
            f"{file.name} {'was overwritten' if uri in now else 'is gone'}"
            for uri, file in sorted(before.items())
            if now.get(uri) != file and not (uri not in now and first is not None and _is_before(file.name, first))
        ]
        if changed:
            more = f"\nand {len(changed) - MAX_NAMED:,} more" if len(changed) > MAX_NAMED else ""
            raise CommitConflict(
                "the log is not the one that the deletion was planned on",
                where=self._where, found="\n".join(changed[:MAX_NAMED]) + more,
                allowed="commits and checkpoints of the same size, time and tag",
                help=f"nothing was deleted; plan again. Find out who overwrites or removes files in {LOG_FOLDER}",
            )  # fmt: skip


def _of_log(storage: TableStorage, listed: Mapping[str, StoredFile]) -> dict[str, StoredFile]:
    """The commits and checkpoints among what lies in a log's folder, with their sidecars."""
    found = {uri: file for uri, file in listed.items() if is_of_log(file.name)}
    for folder in (file for file in listed.values() if file.is_dir and file.name == SIDECAR_FOLDER):
        found.update(storage.children(folder.uri))
    return found


def _is_before(name: str, first: int) -> bool:
    """Whether a clean-up of the log takes a file away, if it leaves commits from a version on: sidecars have none."""
    version = name.partition(".")[0]
    return not version.isdigit() or int(version) < first
