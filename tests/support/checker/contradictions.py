"""Whether what runs left behind is true: logs, files, ledger, results, history, reports and exit codes agree.

`contradictions(project)` reads everything again, with no code of what it checks, and names what cannot be true at
once. It reads plain files and takes milliseconds for small lakes. Each rule is a function with its sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.support.checker import (
    truth_of_commits,
    truth_of_ledger,
    truth_of_leftovers,
    truth_of_results,
    truth_of_tables,
    truth_of_vacuums,
)
from tests.support.checker.truth_records import Contradiction, Evidence

RULES = (
    *truth_of_tables.RULES,
    *truth_of_commits.RULES,
    *truth_of_results.RULES,
    *truth_of_ledger.RULES,
    *truth_of_vacuums.RULES,
    *truth_of_leftovers.RULES,
)


def contradictions(
    project: Path,
    *,
    exit_code: int | None = None,
    exit_codes: Mapping[str, int] | None = None,
    stdout: str | None = None,
    histories: Mapping[str, Any] | None = None,
    below: Path | None = None,
    before: Iterable[Path] = (),
    but_not: Iterable[str] = (),
) -> list[Contradiction]:
    """Name everything about a project's runs that cannot be true at once.

    Args:
        project: The project's folder, or whichever holds `.maintainer/runs`.
        exit_code: What the newest run's process ended with.
        exit_codes: The same for several runs, by their ids.
        stdout: What the newest run printed.
        histories: JSON documents of `history TABLE` by table; "" is that of all tables.
        below: Where tables lie that are not in the project's folder.
        before: Files that were there before the first run.
        but_not: Names of rules that are left out.
    """
    evidence = Evidence(project, below, dict(exit_codes or {}), stdout, dict(histories or {}), frozenset(before))
    if exit_code is not None and evidence.runs:
        evidence = Evidence(
            project, below, {**evidence.exit_codes, evidence.runs[-1].run_id: exit_code},
            stdout, evidence.histories, evidence.before,
        )  # fmt: skip
    left_out = frozenset(but_not)
    unknown = left_out - {rule.__name__ for rule in RULES}
    if unknown:
        raise ValueError(f"no such rules: {sorted(unknown)}")
    rules = [rule for rule in RULES if rule.__name__ not in left_out]
    return [Contradiction(rule.__name__, text) for rule in rules for text in rule(evidence)]


def assert_truth(project: Path, **circumstances: Any) -> None:
    """Fail with every contradiction; see `contradictions` for the arguments.

    Raises:
        AssertionError: Something that was left behind is not true.
    """
    reported = contradictions(project, **circumstances)
    assert not reported, "what the runs left behind contradicts itself:\n" + "\n".join(
        f"  {contradiction}" for contradiction in reported
    )
