"""A table's `_delta_log` replayed from plain files, for checks that share no code with what they check.

Commits are read as JSON lines, checkpoints by pyarrow. Nothing here is fast or complete: it reads what tests make, and
says `LogUnreadable` about the rest.
"""

from __future__ import annotations

import base64
import json
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote

LOG = "_delta_log"
_Z85 = str.maketrans(  # to the signs of RFC 1924, which Python decodes
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#",
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~",
)
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10})|\.[0-9a-f-]{36})?\.(parquet|json)")
_UUID_SIGNS = 20


class LogUnreadable(Exception):
    """The log has a hole, or a file of it cannot be parsed."""


@dataclass(frozen=True)
class LogStamp:
    """What our commits carry in `userMetadata`."""

    run_id: str
    step_id: str
    batch: int
    policy: str

    @property
    def kind(self) -> str:
        """The kind of step: the last part of its id."""
        return self.step_id.rpartition("/")[2].partition("#")[0]

    @staticmethod
    def of(text: object) -> LogStamp | None:
        """Read it from `userMetadata`; None for anything else."""
        try:
            inner = json.loads(str(text))["maintainer"]
            return LogStamp(str(inner["run"]), str(inner["step"]), int(inner["batch"]), str(inner["policy"]))
        except (ValueError, KeyError, TypeError):
            return None


@dataclass(frozen=True)
class LogCommit:
    """One commit file."""

    version: int
    actions: tuple[dict[str, Any], ...]

    def named(self, name: str) -> list[dict[str, Any]]:
        """Its actions of one name, such as `add`."""
        return [action[name] for action in self.actions if isinstance(action.get(name), dict)]

    @cached_property
    def info(self) -> dict[str, Any]:
        """Its `commitInfo`; empty where there is none."""
        infos = self.named("commitInfo")
        return infos[0] if infos else {}

    @property
    def operation(self) -> str:
        """What it says it did."""
        return str(self.info.get("operation", ""))

    @property
    def metrics(self) -> Mapping[str, str]:
        """Its `operationMetrics`."""
        return self.info.get("operationMetrics") or {}

    @cached_property
    def stamp(self) -> LogStamp | None:
        """Our mark; None for somebody else's commit."""
        return LogStamp.of(self.info.get("userMetadata"))


@dataclass(frozen=True)
class LogTable:
    """A replayed table. `known` are all files that any version, or a checkpoint, names: data, change and vector files.

    `commits` are those whose files are still there. `live` has the `add` of each live file, by path and vector.
    """

    root: Path
    commits: Mapping[int, LogCommit]
    live: Mapping[tuple[str, str], dict[str, Any]]
    known: frozenset[Path]
    metadata: Mapping[str, Any]
    history: Mapping[int, frozenset[Path]] = field(default_factory=dict)

    @property
    def version(self) -> int:
        """The newest version."""
        return max(self.commits, default=-1)

    @property
    def table_id(self) -> str:
        """Its id."""
        return str(self.metadata.get("id", ""))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of its top level columns."""
        schema = json.loads(self.metadata.get("schemaString") or '{"fields": []}')
        return tuple(str(column["name"]) for column in schema["fields"])

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Names of the columns that it is partitioned by."""
        return tuple(self.metadata.get("partitionColumns") or ())

    @cached_property
    def stats(self) -> Mapping[str, str]:
        """The statistics of each file that a commit added, by path."""
        adds = (add for commit in self.commits.values() for add in commit.named("add"))
        return {add["path"]: add["stats"] for add in adds if add.get("stats")}

    def stamped(self) -> Iterator[tuple[LogCommit, LogStamp]]:
        """Our commits, oldest first."""
        for _, commit in sorted(self.commits.items()):
            if commit.stamp is not None:
                yield commit, commit.stamp


def local_file(root: Path, path: str) -> Path:
    """The file on disk that a path of a log, or a URI, means."""
    text = unquote(path)
    if text.startswith("file:"):
        text = "/" + text.removeprefix("file:").lstrip("/")
    return root / text  # an absolute path replaces the root


def vector_file(root: Path, vector: Mapping[str, Any]) -> Path | None:
    """The file of a deletion vector; None where it lies in the log itself."""
    text = str(vector["pathOrInlineDv"])
    match vector["storageType"]:
        case "u":
            folder, encoded = text[:-_UUID_SIGNS], text[-_UUID_SIGNS:]
            return root / folder / f"deletion_vector_{uuid.UUID(bytes=base64.b85decode(encoded.translate(_Z85)))}.bin"
        case "p":
            return local_file(root, text)
        case _:
            return None


def replay_table(root: Path) -> LogTable:
    """Read a table's log.

    Raises:
        LogUnreadable: It has a hole or is damaged.
    """
    commits = {version: _commit(root, version) for version in _versions(root)}
    if not commits:
        raise LogUnreadable(f"{root / LOG} has no commit")
    oldest = min(commits)
    if sorted(commits) != list(range(oldest, max(commits) + 1)):
        raise LogUnreadable(f"{root / LOG} misses a commit between {oldest} and {max(commits)}")
    state = _State(root)
    start = 0
    if oldest > 0:
        start = max(
            (checkpoint_version for checkpoint_version in _checkpoints(root) if checkpoint_version + 1 >= oldest),
            default=-1,
        )
        if start < 0:
            raise LogUnreadable(f"{root / LOG} begins at version {oldest} and has no checkpoint")
        for action in _checkpoint_actions(root, start):
            state.apply(action)
        state.close(start)
    for version, commit in sorted(commits.items()):
        if oldest == 0 or version > start:
            for action in commit.actions:
                state.apply(action)
            state.close(version)
    # Commits before the checkpoint still name files.
    for commit in commits.values():
        for action in commit.actions:
            state.note(action)
    return LogTable(root, commits, state.live, frozenset(state.known), state.metadata, state.history)


class _State:
    """The mutable form of a table while its log is replayed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.live: dict[tuple[str, str], dict[str, Any]] = {}
        self.known: set[Path] = set()
        self.metadata: dict[str, Any] = {}
        self.history: dict[int, frozenset[Path]] = {}

    def apply(self, action: Mapping[str, Any]) -> None:
        self.note(action)
        if action.get("add"):
            self.live[_key(action["add"])] = action["add"]
        elif action.get("remove"):
            self.live.pop(_key(action["remove"]), None)
        elif action.get("metaData"):
            self.metadata = action["metaData"]

    def note(self, action: Mapping[str, Any]) -> None:
        for name in ("add", "remove", "cdc"):
            if action.get(name):
                self.known.update(files_of(self.root, action[name]))

    def close(self, version: int) -> None:
        # By the path as it stands in the log: a name on disk may hold a % of its own.
        self.history[version] = frozenset(local_file(self.root, add["path"]) for add in self.live.values())


def files_of(root: Path, action: Mapping[str, Any]) -> Iterator[Path]:
    """The file, and the vector's file, of an `add`, `remove` or `cdc`."""
    yield local_file(root, action["path"])
    vector = action.get("deletionVector")
    if vector and (path := vector_file(root, vector)) is not None:
        yield path


def _key(action: Mapping[str, Any]) -> tuple[str, str]:
    vector = action.get("deletionVector")
    if not vector:
        return unquote(action["path"]), ""
    return unquote(action["path"]), f"{vector['storageType']}{vector['pathOrInlineDv']}@{vector.get('offset')}"


def _versions(root: Path) -> list[int]:
    try:
        names = [path.name for path in (root / LOG).iterdir()]
    except OSError as error:
        raise LogUnreadable(f"{root / LOG} cannot be listed: {error}") from error
    return sorted(int(name[:20]) for name in names if re.fullmatch(r"\d{20}\.json", name))


def _commit(root: Path, version: int) -> LogCommit:
    path = root / LOG / f"{version:020d}.json"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        actions = tuple(json.loads(line) for line in lines if line.strip())
    except (OSError, ValueError) as error:
        raise LogUnreadable(f"{path} cannot be read: {error}") from error
    if not all(isinstance(action, dict) for action in actions):
        raise LogUnreadable(f"{path} holds something that is no action")
    return LogCommit(version, actions)


def _checkpoints(root: Path) -> list[int]:
    """Versions with a whole checkpoint."""
    parts: dict[int, int] = {}
    whole: set[int] = set()
    for path in (root / LOG).iterdir():
        match = _CHECKPOINT.fullmatch(path.name)
        if match is None:
            continue
        version = int(match[1])
        if match[3] is None:
            whole.add(version)
            continue
        parts[version] = parts.get(version, 0) + 1
        if parts[version] == int(match[3]):
            whole.add(version)
    return sorted(whole)


def _checkpoint_actions(root: Path, version: int) -> Iterator[dict[str, Any]]:
    for path in sorted((root / LOG).glob(f"{version:020d}.checkpoint*")):
        if _CHECKPOINT.fullmatch(path.name) is None:
            continue
        for action in _rows(path):
            sidecar = action.get("sidecar")
            if sidecar:
                yield from _rows(root / LOG / "_sidecars" / Path(sidecar["path"]).name)
            else:
                yield action


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """Actions of one file of a checkpoint."""
    try:
        if path.suffix == ".json":
            yield from (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
            return
        import pyarrow.parquet

        for row in pyarrow.parquet.read_table(path).to_pylist():
            yield {name: _plain(value) for name, value in row.items() if value is not None}
    except (OSError, ValueError) as error:
        raise LogUnreadable(f"{path} cannot be read: {error}") from error


def _plain(action: dict[str, Any]) -> dict[str, Any]:
    """Maps of a checkpoint come as pairs; a commit has objects."""
    return {
        name: dict(value) if name in ("partitionValues", "tags", "configuration") and value is not None else value
        for name, value in action.items()
    }


def removes_a_request(commit: LogCommit) -> bool:
    """Whether an incremental Z-order removed the request that it answered: no file comes or goes."""
    return commit.operation == "UNSET TBLPROPERTIES" and not (commit.named("add") or commit.named("remove"))
