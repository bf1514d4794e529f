"""Replay a log's actions into a table's state, as Delta's protocol says: the newest action counts. Pure.

All readers use it, however they got the actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from maintainer.delta.log.actions import LoggedFile
from maintainer.delta.log.conflicting_commit import removed_key
from maintainer.model.table.log_names import CHECKPOINT_PART, CLASSIC_CHECKPOINT, COMMIT_NAME, UUID_CHECKPOINT


@dataclass(frozen=True, slots=True)
class Segment:
    """The files of a log that make up a version: one checkpoint (none before the first) and the commits above it."""

    version: int
    checkpoint: tuple[str, ...]
    commits: tuple[str, ...]


class IncompleteLog(ValueError):
    """The log's files do not make up the version."""


def segment(names: Iterable[str], version: int | None = None) -> Segment:
    """Choose the files that make up a version, or the newest one.

    Raises:
        IncompleteLog: Files are missing; the message names the first version that is.
    """
    commits: dict[int, str] = {}
    whole: dict[int, tuple[str, ...]] = {}
    parts: dict[tuple[int, int], dict[int, str]] = {}
    for name in names:
        if match := COMMIT_NAME.match(name):
            commits[int(match[1])] = name
        elif match := CLASSIC_CHECKPOINT.match(name) or UUID_CHECKPOINT.match(name):
            whole.setdefault(int(match[1]), (name,))
        elif match := CHECKPOINT_PART.match(name):
            parts.setdefault((int(match[1]), int(match[3])), {})[int(match[2])] = name
    for (number, total), pieces in parts.items():
        if set(pieces) == set(range(1, total + 1)):
            whole.setdefault(number, tuple(pieces[piece] for piece in sorted(pieces)))
    newest = max([*commits, *whole], default=-1)
    target = newest if version is None else version
    if newest < 0 or target > newest:
        raise IncompleteLog(f"there is no version {max(target, 0)}")
    start = max((checkpoint for checkpoint in whole if checkpoint <= target), default=-1)
    needed = range(start + 1, target + 1)
    missing = next((commit for commit in needed if commit not in commits), None)
    if missing is not None:
        raise IncompleteLog(f"version {missing} is missing, and no checkpoint covers it")
    return Segment(target, whole.get(start, ()), tuple(commits[commit] for commit in needed))


@dataclass(slots=True)
class LogState:
    """What a table is at a version: fill it with ``take``, oldest action first."""

    version: int
    metadata: dict[str, Any] = field(default_factory=dict)
    protocol: dict[str, Any] = field(default_factory=dict)
    domains: dict[str, str] = field(default_factory=dict)
    transactions: dict[str, dict[str, Any]] = field(default_factory=dict)
    commit_info: dict[str, Any] = field(default_factory=dict)
    files: dict[tuple[str, str], LoggedFile] = field(default_factory=dict)
    strays: int = 0
    """Removals of what was not live: the same file in another spelling, perhaps."""

    def take(self, actions: Iterable[Mapping[str, Any]]) -> None:
        """Apply the actions of a checkpoint or of one commit; the body of an ``add`` is a ``LoggedFile``."""
        self.commit_info = {}
        added: dict[tuple[str, str], LoggedFile] = {}
        for action in actions:
            for kind, body in action.items():
                match kind:
                    case "add":
                        added[body.key] = body
                    case "remove":
                        self.strays += self.files.pop(removed_key(body), None) is None
                    case "metaData":
                        self.metadata = body
                    case "protocol":
                        self.protocol = body
                    case "domainMetadata" if body.get("removed"):
                        self.domains.pop(body["domain"], None)
                    case "domainMetadata":
                        self.domains[body["domain"]] = str(body.get("configuration") or "")
                    case "txn":
                        self.transactions[str(body.get("appId"))] = body
                    case "commitInfo":
                        self.commit_info = body
                    case _:
                        pass
        # A commit's removes come before its adds, whatever their order in the file: a file may be added again.
        self.files.update(added)
