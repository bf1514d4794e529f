"""Why a mutant may live. The file is written by hand, and a survivor without a reason makes the command fail.

A reason is found by the file, the text of the line and the change, not by the line's number, which moves.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import yaml

from tools.mutation.mutants import Mutant

REASONS = Path(__file__).with_name("survivors.yml")

Key = tuple[str, str, str]


def key_of(mutant: Mutant, root: Path) -> Key:
    """Return what a mutant is known by."""
    line = (root / mutant.file).read_text(encoding="utf-8").splitlines()[mutant.line - 1]
    return mutant.file, line.strip(), mutant.change


def read_reasons(path: Path = REASONS) -> dict[Key, str]:
    """Read the reasons.

    Raises:
        ValueError: An entry has no reason, or there are two for one change.
    """
    reasons: dict[Key, str] = {}
    for file, lines in (yaml.safe_load(path.read_text(encoding="utf-8")) or {}).items():
        for line, changes in lines.items():
            for change, reason in changes.items():
                if not str(reason or "").strip():
                    raise ValueError(f"{file}: {line}: {change}: no reason")
                reasons[file, line, change] = str(reason)
    return reasons


def unused(reasons: dict[Key, str], mutants: Iterable[Mutant], root: Path) -> list[Key]:
    """Return reasons for changes that there are no more."""
    existing = {key_of(mutant, root) for mutant in mutants}
    return sorted(set(reasons) - existing)
