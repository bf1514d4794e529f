"""Write ``docs/mutation.md``: the figures of a whole run, and each mutant that lives with the reason."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

from tools.mutation.mutants import Mutant
from tools.mutation.survivors import Key, key_of
from tools.mutation.trials import KILLED, Fate

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mutation.md"

_INTRODUCTION = """# Mutation testing

Made by `make mutation`, not by hand. The code that decides which rows and files are touched is changed in one place at
a time: a comparison turned, a bound moved by one, `and` for `or`, a figure, a text, a return value, a statement left
out. The tests that need no Spark must notice each change. What lives on stands below with the reason why it may; one
without a reason makes the command fail.
"""


def page(
    mutants: Mapping[str, Sequence[Mutant]],
    fates: Mapping[Mutant, Fate],
    reasons: Mapping[Key, str],
    root: Path,
    num_tests: int,
) -> str:
    """Return the page of a whole run."""
    lines = [
        _INTRODUCTION,
        f"Last whole run: {datetime.now(timezone.utc):%Y-%m-%d}, commit `{_commit(root)}`, {num_tests:,} tests.\n",
        "| target | mutants | killed | of them by the time limit | living |",
        "|---|---:|---:|---:|---:|",
    ]
    for target, listed in mutants.items():
        lines.append(_row(target, listed, fates))
    lines.append(_row("all", [mutant for listed in mutants.values() for mutant in listed], fates))
    for target, listed in mutants.items():
        living = [mutant for mutant in listed if fates[mutant] not in KILLED]
        if living:
            lines += [f"\n## {target}: what lives, and why\n", "| where | change | why it may live |", "|---|---|---|"]
        for mutant in living:
            where = f"`{mutant.file.removeprefix('maintainer/')}:{mutant.line}`"
            reason = reasons.get(key_of(mutant, root), "**no reason**")
            lines.append(f"| {where} | {_cell(mutant.change)} | {reason} |")
    return "\n".join(lines) + "\n"


def _row(name: str, listed: Sequence[Mutant], fates: Mapping[Mutant, Fate]) -> str:
    killed = sum(fates[mutant] in KILLED for mutant in listed)
    late = sum(fates[mutant] is Fate.TIMED_OUT for mutant in listed)
    return f"| {name} | {len(listed):,} | {killed:,} | {late:,} | {len(listed) - killed:,} |"


def _cell(change: str) -> str:
    escaped = change.replace("|", "\\|").replace("`", "'")
    return f"`{escaped}`"


def _commit(root: Path) -> str:
    command = ["git", "rev-parse", "--short=8", "HEAD"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=30, check=True).stdout.strip()
