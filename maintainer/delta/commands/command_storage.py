"""Read a table's log and files through Spark's data sources, with only what Spark Connect offers.

Each read is a job, so many commit files are read at once. A commit file never changes, so its lines are kept as long
as this object lives: for one operation on one table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote

from maintainer.delta.commands.command_session import CommandSession
from maintainer.delta.jvm import records_sql
from maintainer.delta.storage.failures.engine_failures import describe
from maintainer.delta.storage.log_paths import COMMIT_NAME, file_uri, is_absolute, text_uri
from maintainer.delta.storage.table_storage import LogEntry
from maintainer.model.table.vector_names import vector_of_id, vector_path

COMMITS_READ_AT_ONCE = 500
_KINDS = ("add", "metaData", "protocol", "domainMetadata", "sidecar")
_ADD_FIELDS = ("path", "partitionValues", "size", "modificationTime", "tags", "deletionVector")


class SparkStorage:
    """The storage of one table; ``root`` as Spark writes it (``file:/a b``: qualified, not percent-encoded)."""

    def __init__(self, session: CommandSession, root: str) -> None:
        self._session = session
        self._root = root.rstrip("/")
        self._root_uri = text_uri(self._root)
        self._lines: dict[str, list[str]] = {}
        self._listed: list[LogEntry] = []

    @property
    def root_uri(self) -> str:
        """The qualified, percent-encoded URI of the table's root, without a trailing slash."""
        return self._root_uri

    @property
    def root_text(self) -> str:
        """The table's root as Spark's readers take it."""
        return self._root

    def uri(self, relative: str) -> str:
        """The qualified URI of a path as the log writes it."""
        return file_uri(self._root_uri, relative)

    # -- files ----------------------------------------------------------------------------------------------

    def sizes(self) -> dict[str, int]:
        """Bytes of every file below the root by its URI, as listed now. Spark follows symlinks."""
        return self._sizes_in(self._root)

    def sizes_beside(self, uris: Iterable[str]) -> dict[str, int]:
        """Bytes of existing files outside the root, by URI: a shallow clone refers to some."""
        sizes: dict[str, int] = {}
        for folder in {uri.rpartition("/")[0] for uri in uris}:
            try:
                sizes.update(self._sizes_in(unquote(folder)))
            except Exception as error:
                if not any(failure.condition == "PATH_NOT_FOUND" for failure in describe(error)):
                    raise
        return sizes

    def _sizes_in(self, folder: str) -> dict[str, int]:
        rows = self._session.files(folder, recursive=True).collect()
        return {text_uri(str(row[0])): int(row[1]) for row in rows}

    # -- the log --------------------------------------------------------------------------------------------

    def log_files(self) -> dict[str, int]:
        """Names of the log's files, and when each was written (milliseconds)."""
        rows = self._session.files(f"{self._root}/_delta_log").collect()
        return {str(row[0]).rpartition("/")[2]: int(row[2]) for row in rows}

    def commits(self, *, after_version: int = -1) -> list[LogEntry]:
        """The published commit files above a version, in order."""
        entries = []
        for name, at in self.log_files().items():
            match = COMMIT_NAME.match(name)
            if match and int(match[1]) > after_version:
                entries.append(LogEntry(int(match[1]), at, name))
        self._listed = sorted(entries, key=lambda entry: entry.version)
        return list(self._listed)

    def commit_info(self, entry: LogEntry) -> dict[str, Any]:
        """The commit's ``commitInfo``; empty if it has none."""
        for line in self._lines_of(entry):
            if '"commitInfo"' in line[:40]:
                info: dict[str, Any] = json.loads(line)["commitInfo"]
                return info
        return {}

    def actions(self, entry: LogEntry, *, with_adds: bool = False) -> Iterator[dict[str, Any]]:
        """The commit's actions; adds only if asked for."""
        for line in self._lines_of(entry):
            if line.strip() and (with_adds or not line.startswith('{"add"')):
                yield json.loads(line)

    def _lines_of(self, entry: LogEntry) -> list[str]:
        name = entry.uri
        if name not in self._lines:
            names = [listed.uri for listed in self._listed if listed.version >= entry.version] or [name]
            self.read_commits(
                [commit_name for commit_name in names if commit_name not in self._lines][:COMMITS_READ_AT_ONCE]
            )
        return self._lines[name]

    def read_commits(self, names: list[str]) -> None:
        """Read commit files in one job, to be kept."""
        if not names:
            return
        lines: dict[str, list[str]] = {name: [] for name in names}
        for row in self._session.lines([f"{self._root}/_delta_log/{name}" for name in names]).collect():
            lines[str(row[0])].append(str(row[1]))
        self._lines.update(lines)

    def commit_actions(self, name: str) -> list[dict[str, Any]]:
        """All actions of a commit file that was read."""
        return [json.loads(line) for line in self._lines[name] if line.strip()]

    def checkpoint_actions(self, names: tuple[str, ...], *, bounds: bool = False) -> Iterator[dict[str, Any]]:
        """The actions of a checkpoint, of any of its three forms; without bounds only the count of the statistics."""
        if not names:
            return
        folder = f"{self._root}/_delta_log"
        if names[0].endswith(".json"):
            rows = self._session.lines([f"{folder}/{name}" for name in names]).collect()
            actions = [json.loads(row[1]) for row in rows if str(row[1]).strip()]
        else:
            actions = list(self._parquet_actions([f"{folder}/{name}" for name in names], bounds))
        sidecars = [str(action["sidecar"]["path"]) for action in actions if "sidecar" in action]
        yield from actions
        if sidecars:
            yield from self._parquet_actions(
                [
                    unquote(sidecar) if is_absolute(sidecar) else f"{folder}/_sidecars/{unquote(sidecar)}"
                    for sidecar in sidecars
                ],
                bounds,
            )

    def _parquet_actions(self, paths: list[str], bounds: bool) -> Iterator[dict[str, Any]]:
        frame = self._session.parquet(paths)
        fields: dict[str, Any] = {
            column["name"]: column["type"] for column in json.loads(frame.schema.json())["fields"]
        }
        present = [kind for kind in _KINDS if kind in fields]
        if not present:
            return
        columns = []
        for kind in present:
            body = _add_text(fields[kind], bounds) if kind == "add" else f"to_json({kind})"
            columns.append(f"WHEN {kind} IS NOT NULL THEN concat('{{\"{kind}\":', {body}, '}}')")
        line = "CASE " + " ".join(columns) + " END AS line"
        for row in frame.selectExpr(line).where("line IS NOT NULL").collect():
            yield json.loads(row[0])

    # -- deletion vectors -----------------------------------------------------------------------------------

    def vector_uri_of_id(self, unique_id: str) -> str | None:
        """The URI of the deletion vector file behind a unique id; None if the vector is inline."""
        vector = vector_of_id(unique_id)
        return None if vector is None else self.vector_uri(*vector)

    def vector_uri(self, kind: str, path: str) -> str:
        """The URI of a deletion vector file, decoded as Delta's protocol says."""
        if kind == "p":
            return self.uri(path)
        below = vector_path(path)
        if below is None:
            raise ValueError(f"{path!r} is not the path of a deletion vector")
        return self.uri(below)


def _add_text(kind: dict[str, Any], bounds: bool) -> str:
    """An ``add`` of a checkpoint as JSON, by default without the statistics' bounds, which are most of it."""
    have = {field["name"]: field["type"] for field in kind["fields"]}
    fields = [f"'{name}', add.{name}" for name in _ADD_FIELDS if name in have]
    if bounds:
        whole = ["add.stats"] * ("stats" in have) + ["to_json(add.stats_parsed)"] * ("stats_parsed" in have)
        fields += [f"'stats', coalesce({', '.join(whole)})"] if whole else []
        return f"to_json(named_struct({', '.join(fields)}))"
    counts = [records_sql("add.stats")] if "stats" in have else []
    parsed = have.get("stats_parsed")
    if isinstance(parsed, dict) and any(field["name"] == "numRecords" for field in parsed["fields"]):
        counts.append("CAST(add.stats_parsed.numRecords AS BIGINT)")
    if counts:
        fields.append(f"'stats', concat('{{\"numRecords\":', coalesce({', '.join(counts)}), '}}')")
    return f"to_json(named_struct({', '.join(fields)}))"
