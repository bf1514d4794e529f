"""Forgeries with the rule that must notice each, and what the checker of truth says of a project that is written."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.checker.contradictions import contradictions
from tests.unit.support.forged_project import ForgedProject, event_line

Forgery = Callable[[ForgedProject], None]
Case = tuple[str, str, Forgery]
"""The rule, words of its message, and the forgery."""


def registering(cases: list[Case]) -> Callable[[str, str], Callable[[Forgery], Forgery]]:
    """Return what puts changes to a true project into ``cases``, each with the rule that must notice it."""

    def forgery(rule: str, words: str) -> Callable[[Forgery], Forgery]:
        def register(change: Forgery) -> Forgery:
            cases.append((rule, words, change))
            return change

        return register

    return forgery


def judged(project: ForgedProject) -> list[tuple[str, str]]:
    """Rule and text of each contradiction of a written project."""
    project.write()
    reported = contradictions(
        project.root, exit_codes=project.exit_codes, stdout=project.stdout, histories=project.histories
    )
    return [(contradiction.rule, contradiction.text) for contradiction in reported]


def judged_again(project: ForgedProject) -> list[str]:
    """What contradicts itself when the events are written anew."""
    for run_id, run in project.runs.items():
        text = "".join(event_line(event) + "\n" for event in run.events)
        (project.runs_dir / run_id / "events.jsonl").write_text(text)
    return [contradiction.text for contradiction in contradictions(project.root)]
