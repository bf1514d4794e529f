"""Tests of policies: given a table with these files and this history, expect these steps. Runs without Spark.

Planning is a pure function of policy, facts, record and time, so a test needs neither a table nor an engine. A failed
test is a finding at the line of the expectation, like any other finding in a file of the project.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any, assert_never
from zoneinfo import ZoneInfo

from maintainer.errors import ProjectError
from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.steps import (
    BatchedStep,
    SetPropertiesStep,
    Step,
    VacuumStep,
)
from maintainer.model.table.table_facts import (
    ColumnSample,
    DataFile,
    DeletionVector,
    Protocol,
    RemovedFile,
    TableFacts,
    TableRecord,
    TableRef,
)
from maintainer.planning.plan_input import TableInput
from maintainer.planning.planner import plan_table
from maintainer.planning.selection.schema_columns import FoundColumn
from maintainer.planning.zorder.zorder_options import sample_wanted
from maintainer.policy.diagnostics import Diagnostic
from maintainer.policy.project.policy_project import LoadedProject
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.policy.schema.schema_check import check_schema, kind_of
from maintainer.policy.yaml.discovery import find_tests
from maintainer.policy.yaml.yaml_document import Path, YamlDocument
from maintainer.policy.yaml.yaml_reader import read_document
from maintainer.report.plan.step_text import shortened
from maintainer.units import parse_duration, parse_size

DEFAULT_NOW = "2026-01-15 12:00"
DEFAULT_AGE = "30d"
DEFAULT_ROWS = 1000
MADE_UP_VALUES = 1000


def now_of(test: Mapping[str, Any]) -> datetime:
    """Return the time of planning that a test names, in UTC."""
    return datetime.strptime(test.get("now", DEFAULT_NOW), "%Y-%m-%d %H:%M").replace(tzinfo=UTC)


def facts_of(ref: TableRef, given: Mapping[str, Any], now_ms: int) -> TableFacts:
    """Build the table. Every column that is no partition column has statistics; the protocol is the plain one."""
    partitioned_by = tuple(given.get("partitionedBy", ()))
    columns = dict(given.get("columns") or {"id": "long"})
    for column in partitioned_by:
        columns.setdefault(column, "string")
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns.items()]
    return TableFacts(
        ref=ref,
        location=f"test:/{ref.identifier}",
        table_id="00000000-0000-0000-0000-000000000000",
        version=1,
        committed_at_ms=now_ms,
        schema_json=json.dumps({"type": "struct", "fields": fields}),
        columns=tuple(columns),
        partition_columns=partitioned_by,
        properties=tuple(sorted((given.get("properties") or {}).items())),
        protocol=Protocol(1, 2),
        files=tuple(_live_files(given, partitioned_by, now_ms)),
        clustering_columns=tuple(given.get("clusteredBy", ())),
        columns_with_stats=tuple(FoundColumn((name,), "").quoted for name in columns if name not in partitioned_by),
        removed_files=tuple(_removed_files(given, now_ms)),
    )


def record_of(given: Mapping[str, Any], now_ms: int) -> TableRecord:
    """Build what the ledger remembers: when the last rewrite and the last vacuum were."""
    return TableRecord(
        last_optimize_at_ms=_ago(given["lastOptimize"], now_ms) if "lastOptimize" in given else None,
        last_vacuum_at_ms=_ago(given["lastVacuum"], now_ms) if "lastVacuum" in given else None,
    )


def _live_files(given: Mapping[str, Any], partitioned_by: tuple[str, ...], now_ms: int) -> Iterator[DataFile]:
    for group, files in enumerate(given.get("files", ())):
        values = files.get("partition", {})
        partition = tuple(
            (column, None if values.get(column) is None else str(values[column])) for column in partitioned_by
        )
        deleted = files.get("deletedRows", 0)
        for number in range(files.get("count", 1)):
            path = f"part-{group:03}-{number:05}.parquet"
            yield DataFile(
                path=path,
                size_bytes=parse_size(files["size"]),
                modification_time_ms=_ago(files.get("age", DEFAULT_AGE), now_ms),
                partition_values=partition,
                physical_records=files.get("rows", DEFAULT_ROWS),
                deletion_vector=DeletionVector(f"u{path}@1", deleted, 40) if deleted else None,
            )


def _removed_files(given: Mapping[str, Any], now_ms: int) -> Iterator[RemovedFile]:
    for group, files in enumerate(given.get("removed", ())):
        for number in range(files.get("count", 1)):
            yield RemovedFile(
                path=f"removed-{group:03}-{number:05}.parquet",
                size_bytes=parse_size(files["size"]),
                removed_at_ms=_ago(files["age"], now_ms),
                removed_in_version=1,
                replaced=True,
            )


def _ago(duration: str, now_ms: int) -> int:
    return now_ms - parse_duration(duration) * 1000


def with_made_up_sample(policy: ResolvedPolicy, facts: TableFacts) -> TableFacts:
    """Add values for the boundaries of a Z-order: a table that is only described has sizes and no data."""
    columns = sample_wanted(policy, facts)
    types = {field["name"]: field["type"] for field in json.loads(facts.schema_json)["fields"]}
    values = tuple(
        tuple(_made_up(types.get(name.strip("`"), "string"), number) for number in range(MADE_UP_VALUES))
        for name in columns
    )
    return replace(facts, column_sample=ColumnSample(columns, values)) if columns else facts


def _made_up(type_name: object, number: int) -> str:
    if str(type_name).startswith(("date", "timestamp")):
        return date.fromordinal(date(2026, 1, 1).toordinal() + number).isoformat()
    return f"{number:04}"


@dataclass(frozen=True, slots=True)
class PolicyTestReport:
    """Findings, sorted, and how many tests were run in how many files, and failed."""

    diagnostics: tuple[Diagnostic, ...]
    files: int
    tests: int
    failed: int


def run_policy_tests(project: LoadedProject) -> PolicyTestReport:
    """Run every test under ``policies/_tests/`` against a project without errors.

    Raises:
        ProjectError: There are too many files; E616, the project has errors, so there is nothing to test.
    """
    project.require_valid()
    findings: list[Diagnostic] = []
    paths = find_tests(project.root)
    num_tests = num_failed = 0
    for path in paths:
        document, mistakes = read_document(path, project.root)
        if document is not None and not mistakes:
            mistakes = check_schema(document, kind_of(document))
        findings.extend(mistakes)
        if document is None or any(problem.is_error for problem in mistakes):
            continue
        for position, test in enumerate(document.data["tests"]):
            num_tests += 1
            problems = list(_run(project, document, ("tests", position), test))
            num_failed += bool(problems)
            findings.extend(problems)
    return PolicyTestReport(tuple(sorted(findings)), len(paths), num_tests, num_failed)


def _run(project: LoadedProject, document: YamlDocument, path: Path, test: Mapping[str, Any]) -> Iterator[Diagnostic]:
    try:
        policy = project.resolve_table(test["table"])
    except ProjectError as error:
        yield document.error_at((*path, "table"), "P361", error.what, error.help or "name a table of this project")
        return
    plan = _plan(project, policy, test)
    expect = test["expect"]
    for key, problem in _differences(plan, expect):
        message = f"test `{test['name']}`: {problem}"
        yield document.error_at((*path, "expect", *key), "P360", message, _hint(plan))


def _plan(project: LoadedProject, policy: ResolvedPolicy, test: Mapping[str, Any]) -> TablePlan:
    now = now_of(test)
    now_ms = int(now.timestamp()) * 1000
    today = now.astimezone(ZoneInfo(project.project.timezone)).date()
    given = test["given"]
    facts = facts_of(policy.table, given, now_ms)
    policy = policy.of_size(facts.size_bytes)
    facts = with_made_up_sample(policy, facts)
    return plan_table(TableInput(policy, facts, record_of(given, now_ms), now_ms, today))


def _differences(plan: TablePlan, expect: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    if "state" in expect and expect["state"] != plan.state:
        yield ("state",), f"the table is `{plan.state}`"
    if "problem" in expect and expect["problem"] != (plan.problem.code if plan.problem else None):
        yield ("problem",), f"the problem is `{plan.problem.code}`" if plan.problem else "there is no problem"
    if "steps" in expect:
        yield from _step_differences(plan.steps, expect["steps"])
    if "leftAlone" in expect:
        reasons = sorted({entry.reason.code.value for entry in plan.left_alone})
        if sorted(expect["leftAlone"]) != reasons:
            yield ("leftAlone",), f"what is left alone is [{', '.join(reasons)}]"


def _step_differences(steps: tuple[Step, ...], expected: list[Mapping[str, Any]]) -> Iterator[tuple[Path, str]]:
    kinds = [step.kind for step in steps]
    if kinds != [step["action"] for step in expected]:
        yield ("steps",), f"the steps are [{', '.join(kinds)}]"
        return
    for position, (step, expected_step) in enumerate(zip(steps, expected, strict=True)):
        facts = _facts_of_step(step)
        for key, value in expected_step.items():
            if key != "action" and facts.get(key) != value:
                yield ("steps", position, key), f"`{key}` of {step.kind} is {facts.get(key, 'nothing that it has')}"


def _facts_of_step(step: Step) -> Mapping[str, object]:
    match step:
        case SetPropertiesStep():
            return {"properties": dict(step.after)}
        case BatchedStep():
            return {"files": step.num_files, "writes": step.num_files_added}
        case VacuumStep():
            return {"files": len(step.files)}
        case _:
            assert_never(step)


def _hint(plan: TablePlan) -> str:
    if plan.problem:
        return f"planned: {plan.problem.code} {plan.problem.what}"
    steps = [f"{step.kind} {shortened(str(dict(_facts_of_step(step))))}" for step in plan.steps]
    reasons = sorted({f"{entry.reason.code.value} ({entry.num_files} files)" for entry in plan.left_alone})
    return f"planned: {'; '.join(steps) or 'no step'}; left alone: {', '.join(reasons) or 'nothing'}"
