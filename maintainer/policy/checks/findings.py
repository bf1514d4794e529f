"""Define what a rule about settings reads, and the finding that it gives."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

from maintainer.policy.diagnostics.diagnostics import Severity
from maintainer.policy.yaml.yaml_document import Path

SAFE_SECONDS = 7 * 86_400
"""Delta's own check, 168 hours: a reader or writer that is still at work may need files for so long."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings by dotted key in base units (bytes, seconds), and the dotted keys of the maps that were written.

    What was malformed is not in ``values``: it was reported before. Items of lists may still be anything.
    """

    values: Mapping[str, object]
    maps: Container[str]

    def number(self, key: str) -> int | None:
        """Return a size, duration or number, None where it is not set."""
        value = self.values.get(key)
        return value if type(value) is int else None

    def items(self, key: str) -> list[tuple[int, Any]]:
        """Return the items of a list with their positions, none where it is not set."""
        value = self.values.get(key)
        return list(enumerate(value)) if isinstance(value, list) else []


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong with the setting at ``path``; ``other`` is the setting that it does not go with.

    ``across`` says the same without "this key": the two may come from different files. None where the rule is about
    one file only.
    """

    code: str
    path: Path
    message: str
    help: str
    other: Path | None = None
    severity: Severity = Severity.ERROR
    at_key: bool = False
    across: str | None = None
