"""Notice that the log which a deletion goes by is no longer the one that was read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from maintainer.delta.log.replay.log_replay import LogReplay, replay
from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.storage.table_log import LogEntry, commits_among
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.errors import CommitConflict
from maintainer.model.table.log_names import LOG_FOLDER, SIDECAR_FOLDER, is_of_log
from maintainer.units import shortened

MAX_NAMED = 5


class LogWatch:
    """The commits and checkpoints of a table as its log's folder was listed, and what came since.

    ``planned`` is what the plan read of them; None where that is not known here.

    Raises:
        CommitConflict: C701, a commit that the plan read is not as it was, by size, time and tag.
    """

    def __init__(
        self,
        storage: TableStorage,
        where: str,
        listed: Mapping[str, StoredFile],
        planned: LogReplay | None = None,
    ) -> None:
        self._storage = storage
        self._where = where
        self._planned = planned
        now = _of_log(storage, listed)
        if planned is not None:
            self._check_same({entry.uri: entry.file for entry in planned.entries}, now)
        self._listed: dict[str, StoredFile] | None = now
        self.entries = commits_among(now.values())
        self._seen = self.entries[-1].version if self.entries else -1

    def replay(self, version: int, going: Iterable[str], removed_before_ms: int) -> LogReplay:
        """Read the listed commits but for those that the plan read: what it found is taken on.

        Where the plan is another one, or an older commit is gone by now, all are read.

        Args:
            version: The version that was planned on.
            going: The URIs of what is to be deleted.
            removed_before_ms: Before when it was removed.
        """
        log, self._planned = self._planned, None
        if log is not None and log.planned_version == version and log.whole_since_ms <= removed_before_ms:
            known = len(log.entries)
            if self.entries[:known] == log.entries and all(map(log.is_named, going)):
                return replay(self._storage, version, self.entries[known:], log)
        return replay(self._storage, version, self.entries)

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
            raise CommitConflict(
                "the log is not the one that the deletion was planned on",
                where=self._where, found=shortened(changed, MAX_NAMED),
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
