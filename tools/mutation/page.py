"""Write ``docs/mutation.md``: the figures of a whole run, and each mutant that lives with the reason.

And ``docs/guards.md``: each guard of a promise with the tests that decide about it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tools.mutation.mutants import Mutant
from tools.mutation.planted import Guard
from tools.mutation.survivors import Key, key_of
from tools.mutation.trials import KILLED, Fate

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mutation.md"
GUARDS_PAGE = PAGE.with_name("guards.md")

_INTRODUCTION = """# Mutation testing

For contributors. Made by `make mutation`, not by hand.
The code that decides which rows and files are touched is changed in one place at
a time: a comparison turned, a bound moved by one, `and` for `or`, a figure, a text, a return value, a statement left
out. The tests that need no Spark must notice each change. What lives on stands below with the reason why it may; one
without a reason makes the command fail.
"""


_GUARDS_INTRODUCTION = """# Guards

For contributors. Made by `make guards`, not by hand. Each [promise](promises.md) rests on guards in the code, listed in
`tools/mutation/guards.yml`: a new guard gets an entry there. `make guards` takes them out one at a time and runs the
tests that decide about them. Each must fail, and pass with the guard in place. All of these tests are in `make test`.
"""


def guards_page(guards: Sequence[Guard]) -> str:
    """Return the page of the guards; it says of no run, for it is also made anew where a guard only moved."""
    lines = [_GUARDS_INTRODUCTION.rstrip()]
    for promise in sorted({guard.promise for guard in guards}):
        lines += [f"\n## Promise {promise}\n", "| guard | in | decided by |", "|---|---|---|"]
        lines += [
            f"| {guard.name} | `{guard.file.removeprefix('maintainer/')}` | "
            + "<br>".join(f"`{test.removeprefix('tests/')}`" for test in guard.tests)
            + " |"
            for guard in guards
            if guard.promise == promise
        ]
    return "\n".join(lines) + "\n"


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
        f"Last whole run: {datetime.now(UTC):%Y-%m-%d}, commit `{_commit(root)}`, {num_tests:,} tests.\n",
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
