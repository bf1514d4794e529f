"""The page on codes of a night knows each code, once for each case, and no other; and a night ends as it says."""

from __future__ import annotations

import ast
import re
import signal
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from maintainer import errors
from maintainer.app.running.run_listener import RunResult
from maintainer.cli.main import run as run_command
from maintainer.errors import ExitCode, MaintainerError
from maintainer.execution.cancellation import TERMINATED, TableControl
from maintainer.execution.table.planned_ends import planned_problem, status_without_steps
from maintainer.model.plan.plan import Problem, TablePlan
from maintainer.model.plan.steps import StepKind
from maintainer.model.run.exit_codes import BUG_CODE, exit_code, plan_exit_code
from maintainer.model.run.outcome import RunOutcome, StepOutcome, StepStatus, TableOutcome, TableStatus
from maintainer.model.run.receipts import CommitReceipt
from maintainer.model.table.table_facts import TableRef
from maintainer.planning.planner import assemble, problem_plan
from maintainer.report.run.outcome_text import STEP_ENDS
from tests.support.policies.projects import write_project
from tests.support.policies.source_errors import modules, nodes
from tests.support.runs.planned_steps import compact, plan_of
from tests.support.tables.builders import NOW_MS, make_policy
from tests.unit.execution.table.table_bench import Bench, three_files

DOCS = Path(__file__).resolve().parents[2] / "docs"
CODES = re.findall(r"^### ([A-Z]\d{3}):", (DOCS / "codes.md").read_text(encoding="utf-8"), re.MULTILINE)
TWICE = {"T404", "T406", "T407"}
"""They end a night only where somebody asked for the table."""


PAGE = (DOCS / "nightly-codes.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| ([A-Z]\d{3}[^|]*) \| ([^|]*) \| ([^|]*) \|", PAGE, flags=re.MULTILINE)
WARNINGS = {"C717", "E654", "E657", "E680", "E686"}
"""No table ends by them: they are told beside the run."""
NO_PROCESS = {"E670"}
"""Raised to whoever calls the Python API."""
OF_FILES = ("Y", "P")
"""What is found in files is no error of its own: the project is not loaded."""

STORE_FAILURES = ("E681", "E682", "E683", "E684", "E685", "E691", "E692", "E693", "E694", "E695")
NOT_BY_KEYWORD: dict[str, type[MaintainerError]] = {
    **dict.fromkeys(("T409", "T412", "T413", "T414", "T445"), errors.TableError),
    **dict.fromkeys(("E650", "E651", *STORE_FAILURES), errors.EnvironmentUnfit),
    "V507": errors.VerificationFailed,
    "E617": errors.ProjectError,
    BUG_CODE: errors.TableError,
}
"""Codes that the source passes on to where the error is made."""
BEFORE_TABLES = ("app", "cli", "model", "policy")
"""Packages whose errors end a run as a whole, before a table is started. Those of others may also end a table."""
PROBLEMS = {"E652": None, "E658": None, "E665": TERMINATED}
"""What a run tells beside its tables, and what interrupted it."""
NOT_IN_A_STEP = {"A404", "A406", "E617"}
"""Raised before a table's first step: by the look at a saved plan, and where the table's lease is taken."""
ENDED: dict[str, tuple[TableStatus, ...]] = {
    **dict.fromkeys(("A403", "A406", "A411", "A420"), (TableStatus.BLOCKED,)),
    "C712": (TableStatus.INTERRUPTED,),
    "C713": (TableStatus.NOT_REACHED,),
    "C714": (TableStatus.FAILED, TableStatus.INTERRUPTED),
}
"""How a table ends whose code no step met; these statuses are those of the tests of runs."""


def codes_in(cell: str) -> Iterator[str]:
    for first, last in re.findall(r"([A-Z]\d{3})(?: to ([A-Z]\d{3}))?", cell):
        yield from (code for code in CODES if first <= code <= (last or first))


def called(call: ast.Call) -> str:
    """The name of a function, or of a method of an object that has a name."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(), attr=name):
            return name
        case _:
            return ""


def constants(nodes: Iterable[ast.AST]) -> set[str]:
    return {str(node.value) for node in nodes if isinstance(node, ast.Constant)} & set(CODES)


def codes_of(call: ast.Call) -> set[str]:
    """The code that a call names: by keyword, or in a place of its own where the module's own function is called."""
    by_keyword = [keyword.value for keyword in call.keywords if keyword.arg == "code"]
    return constants([*by_keyword, *(call.args if called(call).startswith("_") else ())])


def made_with_a_chosen_code(function: ast.FunctionDef) -> set[str]:
    """What a function makes with a code that it chose among several before."""
    targets = [node.targets[0] for node in ast.walk(function) if isinstance(node, ast.Assign)]
    chosen = {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    made = set()
    for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
        codes = [keyword.value for keyword in call.keywords if keyword.arg == "code"]
        if any(isinstance(code, ast.Name) and code.id in chosen for code in codes):
            made.add(called(call))
    return made


def makers_in(tree: ast.Module, known: dict[str, type]) -> dict[str, type]:
    """The functions of a module that return an error, with its class."""
    return {
        node.name: known[node.returns.id]
        for node in nodes(tree)
        if isinstance(node, ast.FunctionDef) and isinstance(node.returns, ast.Name) and node.returns.id in known
    }


@cache
def raised_with() -> dict[str, set[tuple[type[MaintainerError], bool]]]:
    """Which errors the package makes with each code, and whether a table may meet it, by its source."""
    known = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type)}
    raised: dict[str, set[tuple[type[MaintainerError], bool]]] = {}
    for kind in known.values():
        if issubclass(kind, MaintainerError) and "default_code" in vars(kind):
            raised.setdefault(kind.default_code, set()).add((kind, True))
    for code, kind in NOT_BY_KEYWORD.items():
        raised.setdefault(code, set()).add((kind, True))
    everywhere = {name: kind for _, tree in modules() for name, kind in makers_in(tree, known).items()}
    for name, tree in modules():
        folder, package, *_ = name.split("/")
        in_table = folder == "maintainer" and package not in BEFORE_TABLES
        makers = {**everywhere, **known, **makers_in(tree, known)}
        for node in nodes(tree):
            if isinstance(node, ast.Call) and (maker := makers.get(called(node))) is not None:
                for code in codes_of(node):
                    raised.setdefault(code, set()).add((maker, in_table))
            elif isinstance(node, ast.FunctionDef):
                for maker in {makers[name] for name in made_with_a_chosen_code(node) if name in makers}:
                    for code in constants(ast.walk(node)):
                        raised.setdefault(code, set()).add((maker, in_table))
            elif isinstance(node, ast.ClassDef) and node.name not in known:
                bases = [known[base.id] for base in node.bases if isinstance(base, ast.Name) and base.id in known]
                values = [line.value for line in node.body if isinstance(line, ast.Assign)]
                texts = {str(value.value) for value in values if isinstance(value, ast.Constant)}
                for code in texts & set(CODES) if bases else ():
                    raised.setdefault(code, set()).add((bases[0], in_table))
    return raised


def ended(*tables: TableOutcome, interrupted_by: str | None = None) -> ExitCode:
    return exit_code(RunOutcome("r", NOW_MS, 1.0, tables, interrupted_by=interrupted_by))


def changed(status: TableStatus = TableStatus.DONE) -> TableOutcome:
    """Another table of the same run, which was rewritten."""
    commit = CommitReceipt(version=2, read_version=1)
    step = StepOutcome("s.well/compact", StepKind.COMPACT, StepStatus.SUCCEEDED, NOW_MS, 1.0, (commit,))
    return TableOutcome(TableRef("s.well"), status, (step,))


def beside(table: TableOutcome, where: str) -> set[ExitCode]:
    """How runs end in which a table ends so: alone, beside a change, and in the ways that the row names."""
    if "only beside a V code" in where:
        return {ended(table, changed(TableStatus.VERIFY_FAILED))}
    ends = {ended(table), ended(table, changed())}
    if "something ended the run" in where:
        ends.add(ended(table, changed(TableStatus.VERIFY_FAILED)))
        ends |= {ended(table, interrupted_by=by) for by in (signal.SIGINT.name, TERMINATED, "timeout of 60 s")}
    return ends


def ends_in_plan(error: MaintainerError, *, rule_line: int | None, with_others: bool) -> set[ExitCode]:
    """How a night ends where a table cannot be planned for the error; the others of its file are well."""
    refused = replace(problem_plan(make_policy(), error), rule_line=rule_line)
    well = TablePlan(TableRef("s.well"), refused.policy_file, "d", rule_line=rule_line)
    plan = assemble([refused, well] if with_others else [refused], created_at_ms=NOW_MS)
    tables = tuple(
        TableOutcome(table.ref, status_without_steps(table), problem=planned_problem(table)) for table in plan.tables
    )
    return {plan_exit_code(plan), ended(*tables)}


def ends_in_plans(error: MaintainerError, cell: str) -> set[ExitCode]:
    of_its_own, under_a_rule = "policy of its own" in cell, "rule" in cell
    found: set[ExitCode] = set()
    if of_its_own or not under_a_rule:
        found |= ends_in_plan(error, rule_line=None, with_others=True)
    if of_its_own and under_a_rule:
        found |= ends_in_plan(error, rule_line=3, with_others=False)
    if not of_its_own:
        found |= ends_in_plan(error, rule_line=3, with_others=True)
    return found


def ends_in_run(error: MaintainerError, folder: Path, where: str) -> set[ExitCode]:
    """How a night ends where a rewrite meets the error right before its commit."""
    bench = Bench(folder)
    table = three_files(bench)
    control = TableControl(bench.switch)

    def meet(station: object) -> None:
        if error.code == "C711":
            control.cancel("limits.timeout", timed_out=True)
        raise RuntimeError("nobody foresaw it") if error.code == BUG_CODE else error

    bench.lake.at("write", meet)
    return beside(bench.run(plan_of(table, compact(table)), control=control), where)


def ends_of(code: str, row: tuple[str, str, str], folder: Path) -> set[ExitCode]:
    """Each end of a run that meets the code, in each way that the source has for it."""
    cell, where, _ = row
    found: set[ExitCode] = set()
    for number, (kind, in_table) in enumerate(sorted(raised_with().get(code, ()), key=repr)):
        error = kind("said", code=code)
        if not in_table or code == "A404" or isinstance(error, errors.EnvironmentUnfit | errors.ProjectError):
            found.add(error.exit_code)
        if in_table and (code.startswith("T") or code == BUG_CODE):
            found |= ends_in_plans(error, cell)
        if in_table and not code.startswith("T") and code not in NOT_IN_A_STEP:
            found |= ends_in_run(error, folder / f"{code}-{number}", where)
    for status in (status for status, end in STEP_ENDS.items() if end.code == code and not found):
        step = StepOutcome("t/vacuum", StepKind.VACUUM, status, NOW_MS, 1.0)
        found |= beside(TableOutcome(TableRef("t"), TableStatus.DONE, (step,)), where)
    for ended_as in ENDED.get(code, ()):
        found |= beside(TableOutcome(TableRef("t"), ended_as, problem=Problem(code, "said")), where)
    if code in PROBLEMS:
        run = RunOutcome("r", NOW_MS, 1.0, (changed(),), PROBLEMS[code], problems=(Problem(code, "said"),))
        found.add(exit_code(run))
    if code in WARNINGS:
        run = RunOutcome("r", NOW_MS, 1.0, (changed(),))
        found.add(RunResult(run, assemble([], created_at_ms=NOW_MS), folder, (Problem(code, "said"),)).exit_code)
    return found


@pytest.mark.parametrize("row", [row for row in ROWS if row[0][0] not in OF_FILES], ids=lambda row: row[0][:40])
def test_a_night_ends_as_the_page_says(row: tuple[str, str, str], tmp_path: Path) -> None:
    codes = [code for code in codes_in(row[0]) if code not in NO_PROCESS]
    said = {ExitCode(int(number)) for number in re.findall(r"\d+", row[2].partition(", also")[0])}
    ends = {code: ends_of(code, row, tmp_path) for code in codes}
    # Each code has an end, none has one that the row does not name, and each end is some code's.
    assert {code: found for code, found in ends.items() if not found or not found <= said} == {}
    assert set().union(*ends.values()) == (said if codes else set())


@pytest.mark.parametrize(
    ("text", "code"),
    [("table: [", "Y107"), ("table: ./t\nno_such_key: 1", "P201"), ("table: ./t\ntags: [a, a]", "P207")],
)
def test_an_error_in_a_file_ends_a_night_before_it_begins(
    text: str, code: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_project(tmp_path, {"maintainer.yml": "", "policies/t.yml": text})
    (end,) = {int(ends) for cell, _, ends in ROWS if cell[0] in OF_FILES}
    assert run_command(["--project", str(tmp_path), "apply", "--yes"]) == end
    assert f"error[{code}" in capsys.readouterr().err


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
