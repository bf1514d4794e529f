"""The page on codes of a night knows each code, once for each case, and no other; and a night ends as it says."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from maintainer import errors
from maintainer.errors import ExitCode, MaintainerError
from maintainer.execution.run.cancellation import TableControl
from maintainer.execution.table.tables_without_steps import problem_without_steps, status_without_steps
from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.steps import StepKind
from maintainer.model.run.exit_codes import exit_code, plan_exit_code
from maintainer.model.run.outcome import RunOutcome, StepOutcome, TableOutcome, TableStatus
from maintainer.model.table.table_facts import TableRef
from maintainer.planning.planner import assemble, problem_plan
from maintainer.report.run.outcome_text import STEP_ENDS
from tests.support.runs.planned_steps import compact, plan_of
from tests.support.tables.builders import NOW_MS, make_policy
from tests.unit.execution.table.table_bench import Bench, three_files

DOCS = Path(__file__).resolve().parents[2] / "docs"
CODES = re.findall(r"^### ([A-Z]\d{3}):", (DOCS / "codes.md").read_text(encoding="utf-8"), re.MULTILINE)
TWICE = {"T404", "T406", "T407"}
"""They end a night only where somebody asked for the table."""


PACKAGE = DOCS.parent / "maintainer"
PAGE = (DOCS / "nightly-codes.md").read_text(encoding="utf-8")
ENDS = re.findall(r"^\| ([A-Z]\d{3}[^|]*) \|[^|]*\| ([015])(?:, also [^|]*)? \|", PAGE, flags=re.MULTILINE)
WARNINGS = {"C717", "E654", "E657", "E680", "E686"}
"""No table ends by them: they are told beside the run."""

NOT_BY_KEYWORD: dict[str, type[MaintainerError]] = {
    **dict.fromkeys(("T412", "T413", "T414"), errors.TableError),
    "V507": errors.VerificationFailed,
}
"""Codes that the source passes on to where the error is made."""


def codes_in(cell: str) -> Iterator[str]:
    for first, last in re.findall(r"([A-Z]\d{3})(?: to ([A-Z]\d{3}))?", cell):
        yield from (code for code in CODES if first <= code <= (last or first))


def raised_with() -> dict[str, set[type[MaintainerError]]]:
    """Which errors the package makes with each code, by its source and by their own code."""
    known = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type)}
    raised: dict[str, set[type[MaintainerError]]] = {}
    for kind in known.values():
        if issubclass(kind, MaintainerError):
            raised.setdefault(kind.default_code, set()).add(kind)
    for code, kind in NOT_BY_KEYWORD.items():
        raised.setdefault(code, set()).add(kind)
    for file in PACKAGE.rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in known:
                for keyword in call.keywords:
                    if keyword.arg == "code" and isinstance(keyword.value, ast.Constant):
                        raised.setdefault(str(keyword.value.value), set()).add(known[call.func.id])
    return raised


RAISED = raised_with()


def ends_in_plan(error: MaintainerError, *, rule_line: int | None, with_others: bool) -> set[ExitCode]:
    """How a night ends where a table cannot be planned for the error; the others of its file are well."""
    refused = replace(problem_plan(make_policy(), error), rule_line=rule_line)
    well = TablePlan(TableRef("s.well"), refused.policy_file, "d", rule_line=rule_line)
    plan = assemble([refused, well] if with_others else [refused], created_at_ms=NOW_MS)
    tables = tuple(
        TableOutcome(table.ref, status_without_steps(table), problem=problem_without_steps(table))
        for table in plan.tables
    )
    return {plan_exit_code(plan), exit_code(RunOutcome("r", NOW_MS, 1.0, tables))}


def ends_in_run(error: MaintainerError, folder: Path) -> set[ExitCode]:
    """How a night ends where a rewrite meets the error right before its commit."""
    bench = Bench(folder)
    table = three_files(bench)
    control = TableControl(bench.switch)

    def meet(where: object) -> None:
        if error.code == "C711":
            control.cancel("limits.timeout", timed_out=True)
        raise error

    bench.lake.at("write", meet)
    return {exit_code(RunOutcome("r", NOW_MS, 1.0, (bench.run(plan_of(table, compact(table)), control=control),)))}


@pytest.mark.parametrize(("cell", "expected"), ENDS, ids=[cell[:40] for cell, _ in ENDS])
def test_a_night_ends_as_the_page_says(cell: str, expected: str, tmp_path: Path) -> None:
    of_its_own, under_a_rule = "policy of its own" in cell, "rule" in cell
    ends: dict[str, set[ExitCode]] = {}
    for code in codes_in(cell):
        made = [kind("said", code=code) for kind in RAISED.get(code, ())]
        by_step = [status for status, end in STEP_ENDS.items() if end.code == code]
        if code in WARNINGS:
            continue
        assert made or by_step, code
        found = ends.setdefault(code, set())
        for number, error in enumerate(made):
            if code.startswith("T"):
                if of_its_own or not under_a_rule:
                    found |= ends_in_plan(error, rule_line=None, with_others=True)
                if of_its_own and under_a_rule:
                    found |= ends_in_plan(error, rule_line=3, with_others=False)
                if not of_its_own:
                    found |= ends_in_plan(error, rule_line=3, with_others=True)
            else:
                found |= ends_in_run(error, tmp_path / f"{code}-{number}")
        for status in by_step if not made else ():
            step = StepOutcome("t/vacuum", StepKind.VACUUM, status, NOW_MS, 1.0)
            table = TableOutcome(TableRef("t"), TableStatus.DONE, (step,))
            found.add(exit_code(RunOutcome("r", NOW_MS, 1.0, (table,))))
    said = {ExitCode(int(expected))}
    assert {code: found for code, found in ends.items() if found != said} == {}


def test_each_code_is_in_one_row() -> None:
    listed: Counter[str] = Counter()
    lines = (DOCS / "nightly-codes.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if re.match(r"\| [A-Z]\d{3}", line)]
    for row in rows:
        cell = row.split("|")[1]
        spans = re.findall(r"([A-Z]\d{3})(?: to ([A-Z]\d{3}))?", cell)
        assert spans, row
        for first, last in spans:
            within = [code for code in CODES if first <= code <= (last or first)]
            assert within, f"{first} is no code"
            assert within[0] == first, f"{first} is no code"
            assert not last or within[-1] == last, f"{last} is no code"
            listed.update(within)
    assert {code: listed[code] for code in CODES if listed[code] != (2 if code in TWICE else 1)} == {}
