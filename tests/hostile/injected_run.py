"""A plan and a run in which one text stands wherever a name or a text from outside can stand."""

from __future__ import annotations

from dataclasses import replace

from tests.support.product import (
    NOT_SET,
    Batch,
    HistoryRow,
    LayoutBoxes,
    Plan,
    PlanComparison,
    PolicyChanges,
    PolicyWork,
    Problem,
    Reason,
    ReasonCode,
    RunOutcome,
    SetPropertiesStep,
    StatusRow,
    StepOutcome,
    TableChange,
    TableOutcome,
    TablePlan,
    TableRef,
    VacuumReceipt,
    VacuumStep,
    ValueChange,
    ZOrderStep,
)
from tests.support.runs import sample_plans
from tests.support.runs import sample_runs as samples


def injected_plan(text: str) -> Plan:
    """Every table, reason, column, partition, property and problem of a plan with the text in it."""
    problem = replace(sample_plans.gone(), ref=TableRef(f"1{text}"), problem=Problem("T401", text, text, text))
    blocked = replace(
        sample_plans.leads(), ref=TableRef(f"2{text}"), blocked=(Reason(ReasonCode.OVER_LIMIT, text, text),)
    )
    quiet = sample_plans.quiet(f"3{text}", (ReasonCode.SUSPENDED, text), (ReasonCode.AT_TARGET, text))
    return replace(
        sample_plans.plan(problem, blocked, _changed(f"4{text}", text), replace(quiet, owner=text)),
        environment=text,
        selection=(text,),
        git_commit=text,
    )


def injected_comparison(text: str) -> PlanComparison:
    """What differs from a commit, with the text in every name and value of it."""
    value, work = ValueChange(f"tags.{text}", text, f"{text}."), PolicyWork(f"8{text}", text, (text, text))
    changed = TableChange(f"7{text}", text, (value, ValueChange("owner", NOT_SET, text)), ("7d", "1d"))
    return PlanComparison(text, PolicyChanges((work,), (work,), (changed,)), injected_plan(text))


def _changed(name: str, text: str) -> TablePlan:
    table = sample_plans.orders()
    reason = Reason(ReasonCode.SMALL_FILES, text, text)
    properties, compact, vacuum = table.steps
    assert isinstance(properties, SetPropertiesStep)
    assert isinstance(vacuum, VacuumStep)
    steps = (
        replace(properties, before=((f"p.{text}", text), ("q", None)), after=((f"p.{text}", f"{text}."), ("q", text))),
        replace(compact, reasons=(reason,)),
        ZOrderStep(
            batches=(Batch((sample_plans.data_bin(text, [12, 13], name=text),)),),
            columns=(text, f"{text}2"),
            max_file_size_bytes=2**28,
            max_threads=1,
            reasons=(reason,),
        ),
        replace(vacuum, decided_by=text, reasons=(reason,)),
    )
    left_alone = tuple(
        replace(left, reason=replace(left.reason, text=text, origin=text), partition_values=((text, text),))
        for left in table.left_alone
    )
    return replace(
        table, ref=TableRef(name), steps=steps, left_alone=left_alone, owner=text, policy_file=text, policy_digest=text
    )


def injected_run(text: str) -> RunOutcome:
    """Every outcome of a run with the text in it; its tables are those of the plan."""
    bad = samples.bad_run()
    names = (f"1{text}", f"2{text}", f"4{text}", f"5{text}", f"6{text}", f"3{text}")
    tables = tuple(_outcome(table, name, text) for table, name in zip(bad.tables, names, strict=True))
    return replace(bad, tables=tables, problems=(Problem("E654", text, text, text),))


def _outcome(table: TableOutcome, name: str, text: str) -> TableOutcome:
    problem = None if table.problem is None else replace(table.problem, what=text, where=text, help=text)
    steps = tuple(_step(step, name, text) for step in table.steps)
    return replace(table, ref=TableRef(name), problem=problem, steps=steps, owner=text, policy_file=text)


def _step(step: StepOutcome, name: str, text: str) -> StepOutcome:
    vacuum = (
        None if step.vacuum is None else VacuumReceipt(1, 2048, (text, f"{text}/y"), 4, 5, stopped=text, trash=text)
    )
    return replace(
        step,
        step_id=f"{name}/{step.kind}",
        error=None if step.error is None else replace(step.error, what=text, where=text, help=text),
        note=text,
        vacuum=vacuum,
        boxes=LayoutBoxes((text, text), (2, 2), ((0, 1, 0, 1),), 1),
        assertions=tuple(
            replace(check, expectation=text, expected=text, observed=text, error=text, column=text)
            for check in step.assertions
        ),
    )


def injected_history(text: str) -> tuple[HistoryRow, ...]:
    """A row for a step of ours, and one for a command of somebody else's."""
    ours = HistoryRow(
        sample_plans.TEN_PM, text, text, "failed", samples.RUN, 1, 2, error_code="T1", error=text, policy_file=text
    )
    other = HistoryRow(sample_plans.TEN_PM, text, text, "", None, 1, 2, reason=text, by=text)
    return ours, other


def injected_status(text: str) -> tuple[StatusRow, ...]:
    """A row of `status`."""
    return (StatusRow(text, "due", 3, 9, 2**30, 12, next=text, policy_file=text, owner=text, auto_compact_source=text),)
