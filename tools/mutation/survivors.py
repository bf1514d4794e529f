"""Why a mutant may live. The file is written by hand, and a survivor without a reason makes the command fail.

A reason is found by the file, the text of the line and the change, not by the line's number, which moves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml

from tools.mutation.mutants import Mutant
from tools.mutation.trials import Fate

REASONS = Path(__file__).with_name("survivors.yml")

FATES = Path(__file__).resolve().parents[2] / ".mutation.json"
"""What became of each mutant in the last run here; not committed."""

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


def place_of(mutant: Mutant, root: Path) -> str:
    """Return what a mutant is known by from one run to the next: its key and its column."""
    return json.dumps([*key_of(mutant, root), mutant.line, mutant.column])


def read_fates() -> dict[str, Fate]:
    """Return what the last run here wrote; nothing without one."""
    if not FATES.exists():
        return {}
    return {place: Fate[name] for place, name in json.loads(FATES.read_text(encoding="utf-8")).items()}


def write_fates(fates: Mapping[Mutant, Fate], root: Path) -> None:
    """Keep what became of mutants, beside what is known of the others."""
    known = read_fates() | {place_of(mutant, root): fate for mutant, fate in fates.items()}
    text = json.dumps({place: fate.name for place, fate in known.items()}, indent=0, sort_keys=True)
    FATES.write_text(text, encoding="utf-8")
