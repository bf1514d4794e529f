"""Give each table file, rule and profile of a project its level in resolution."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from maintainer.model.table.table_facts import TableRef
from maintainer.policy.resolve.merge import Layer, Level, document_layer
from maintainer.policy.select.matching import TableMatch, table_match
from maintainer.policy.select.table_names import identity, table_ref
from maintainer.policy.yaml.yaml_document import Document


@dataclass(frozen=True)
class TableSource:
    """A file with ``table:``. ``written`` is the name as the file has it."""

    document: Document
    ref: TableRef
    written: str

    @cached_property
    def key(self) -> str:
        """What is equal for two spellings of one table."""
        return identity(self.ref)

    def layer(self) -> Layer:
        """Return the file's settings. Not kept: they take more room than the file, and are read once."""
        return document_layer(self.document, Level.TABLE)

    @property
    def tags(self) -> frozenset[str] | None:
        """The tags that the file itself sets; None where it says nothing about tags."""
        return _tags(self.document.data.get("tags"))

    @property
    def extends(self) -> tuple[str, ...]:
        """Names of profiles, lowest first."""
        return tuple(self.extends_at.values())

    @property
    def extends_at(self) -> dict[int, str]:
        """The same by their place in the list; a file with errors may hold anything there."""
        extends = self.document.data.get("extends")
        items = enumerate(extends) if isinstance(extends, list) else ()
        return {position: name for position, name in items if isinstance(name, str)}


@dataclass(frozen=True)
class RuleSource:
    """A file with ``match:``."""

    document: Document
    match: TableMatch
    priority: int

    @cached_property
    def layer(self) -> Layer:
        """The rule's settings."""
        return document_layer(self.document, Level.RULE)

    @property
    def sort_key(self) -> tuple[int, str]:
        """Low to high; rules of one priority never disagree, so their order is only that of messages."""
        return (self.priority, self.document.file)


@dataclass(frozen=True)
class ProfileSource:
    """A file in ``_profiles/``; its name is the file's, without folder and ending."""

    document: Document

    @property
    def name(self) -> str:
        """What ``extends`` calls it."""
        return Path(self.document.file).stem

    @cached_property
    def layer(self) -> Layer:
        """The profile's settings."""
        return document_layer(self.document, Level.PROFILE)

    @property
    def tags(self) -> frozenset[str] | None:
        """The tags that the profile sets; None where it says nothing about tags."""
        return _tags(self.document.data.get("tags"))


def table_source(document: Document, root: Path) -> TableSource:
    """Read a file that has ``table:``."""
    written = str(document.data["table"])
    return TableSource(document, table_ref(written, root), written)


def rule_source(document: Document, root: Path) -> RuleSource:
    """Read a file that has ``match:``."""
    match: Mapping[str, Any] = document.data["match"]
    return RuleSource(document, table_match(match, root), int(document.data.get("priority") or 0))


def own_tags(levels: Iterable[frozenset[str] | None]) -> frozenset[str]:
    """Return the tags of the last level that sets any; what ``match.tags`` compares with."""
    return next((tags for tags in reversed(list(levels)) if tags is not None), frozenset())


def _tags(value: object) -> frozenset[str] | None:
    return frozenset(str(tag) for tag in value) if isinstance(value, list) else None
