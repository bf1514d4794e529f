"""The examples under policies/, and what ``init`` writes, are policies that work."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from maintainer.model.table.table_facts import ColumnRanges, ColumnSample, RemovedFile
from maintainer.planning.plan_input import TableInput
from maintainer.planning.planner import plan_table
from maintainer.planning.zorder.zorder_options import ranges_wanted
from maintainer.policy.project.policy_project import LoadedProject, load_project
from maintainer.report.policy_text import explain_text, merged_yaml
from tests.support.policies.projects import complaints, loaded
from tests.support.tables.builders import DAY_MS, HOUR_MS, MIB, NEVER_TOUCHED, NOW_MS, make_facts, make_file

ROOT = Path(__file__).resolve().parents[4]
EXAMPLES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "policies").rglob("*.yml"))

IDEAS = {
    "demo.smallest": ("optimize.max_file_size_bytes", 256 << 20),
    "demo.sizes": ("optimize.batch_size_bytes", 2 << 30),
    "demo.worth": ("optimize.when.min_small_bytes", 512 << 20),
    "demo.events": ("optimize.where.text", "event_day >= current_date() - 28 AND region IN ('EU', 'US')"),
    "demo.lineitem": ("optimize.zorder.columns", ("l_partkey", "l_suppkey")),
    "demo.vacuumed": ("vacuum.retention_seconds", 14 * 86_400),
    "demo.staging": ("vacuum.allow_short_retention", True),
    "demo.streamed": ("consumers", 2),
    "demo.properties": ("auto_compact.enabled", True),
    "demo.nightly": ("limits.timeout_seconds", 7_200),  # from the rule for the tag
    "demo.verified": ("verify.expectations", 2),
    "demo.huge": ("limits.max_files", 100_000),
    "demo.migrating": ("suspend.reason", "the table moves to another bucket"),
    "demo.facts": ("optimize.max_threads", 12),
    "demo.clicks_by_user": ("optimize.cluster.target_cube_size_bytes", 8 << 30),
    "demo.customers": ("optimize.purge.deleted_rows_ratio", 0.0),
    "demo.sensor_readings": ("optimize.rewrite.file_size_bytes", 128 << 20),
    "bronze.clicks": ("optimize.max_file_size_bytes", 512 << 20),
    "lake/by_path": ("table.is_path", True),
}


@pytest.fixture(scope="module")
def project() -> LoadedProject:
    return load_project(ROOT)


def test_no_example_has_a_finding_and_each_table_has_its_idea(project: LoadedProject) -> None:
    assert complaints(project) == []
    assert {policy.table.identifier for policy in project.resolved()} == set(IDEAS)
    assert project.files_read == len([name for name in EXAMPLES if "/_tests/" not in name])


@pytest.mark.parametrize(("table", "idea"), IDEAS.items(), ids=[table.rpartition("/")[2] for table in IDEAS])
def test_an_example_does_what_it_is_about(project: LoadedProject, table: str, idea: tuple[str, object]) -> None:
    path, expected = idea
    value: object = project.resolve_table(table)
    for name in path.split("."):
        value = getattr(value, name)
    assert (len(value) if isinstance(value, tuple) and isinstance(expected, int) else value) == expected


@pytest.mark.parametrize("table", IDEAS, ids=[table.rpartition("/")[2] for table in IDEAS])
def test_an_example_is_explained_and_merged(project: LoadedProject, table: str, tmp_path: Path) -> None:
    resolution = project.resolution_of(table)
    assert resolution.policy.file in explain_text(resolution)
    alone = loaded(tmp_path, {"policies/merged.yml": merged_yaml(resolution)})
    assert complaints(alone) == []
    merged = alone.resolve_table(table)
    of_the_place = {name: getattr(merged, name) for name in ("table", "file", "origins", "consumers")}
    assert merged == replace(resolution.policy, rule_line=None, **of_the_place)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_names_its_schema_so_that_editors_find_it(name: str) -> None:
    path = ROOT / name
    first = path.read_text(encoding="utf-8").splitlines()[0]
    schema = first.removeprefix("# yaml-language-server: $schema=")
    kind = "tests" if "/_tests/" in name else "policy"
    assert (path.parent / schema).resolve() == ROOT / "schemas" / f"{kind}.schema.json"


STEPS = {
    "demo.smallest": ["compact"],
    "demo.sizes": ["compact"],
    "demo.worth": [],  # sixty files, but not half a gigabyte
    "demo.events": [],  # the newest partition
    "demo.lineitem": ["set_properties", "zorder"],  # incremental: its first revision is a property
    "demo.vacuumed": ["set_properties", "compact", "vacuum"],
    "demo.staging": ["set_properties", "compact", "vacuum"],
    "demo.streamed": ["set_properties", "compact", "vacuum"],
    "demo.properties": ["set_properties", "compact"],
    "demo.nightly": [],  # outside the window
    "demo.verified": ["compact"],
    "demo.huge": ["compact"],
    "demo.migrating": [],  # suspended
    "demo.facts": ["set_properties", "compact", "vacuum"],
    "demo.sensor_readings": ["rewrite"],
    "demo.customers": ["compact", "vacuum"],  # no deleted rows
    "demo.clicks_by_user": ["compact"],  # without clustering columns
    "bronze.clicks": ["set_properties", "compact", "vacuum"],
    "lake/by_path": ["compact"],
}


@pytest.mark.parametrize("table", IDEAS, ids=[table.rpartition("/")[2] for table in IDEAS])
def test_an_example_is_planned(project: LoadedProject, table: str) -> None:
    """One table that suits all: sixty small files in one partition, and files removed long ago."""
    policy = project.resolve_table(table)
    partition = {"event_day": "2026-11-20", "region": "EU"}
    facts = make_facts(
        name=table,
        columns={
            "order_id": "long",
            "quantity": "integer",
            "l_partkey": "long",
            "l_suppkey": "long",
            "sensor_id": "long",
            "measured_at": "timestamp",
            "event_day": "date",
        },
        partitioned_by=("event_day", "region"),
        files=[make_file(f"f{i}", size=MIB, partition=partition) for i in range(60)],
        removed_files=(RemovedFile("r", MIB, NOW_MS - 40 * DAY_MS, removed_in_version=3),),
    )
    wednesday_noon_ms = NOW_MS - 3 * DAY_MS - 10 * HOUR_MS
    columns = ranges_wanted(policy, facts)
    if columns:  # an incremental Z-order: each file spans all values
        span = tuple(("0", "999", False) for _ in columns)
        facts = replace(facts, column_ranges=ColumnRanges(columns, {file.key: span for file in facts.files}))
        values = tuple(tuple(str(value) for value in range(1000)) for _ in columns)
        facts = replace(facts, column_sample=ColumnSample(columns, values))
    plan = plan_table(TableInput(policy, facts, NEVER_TOUCHED, wednesday_noon_ms, date(2026, 11, 18)))
    assert plan.problem is None
    assert [step.kind for step in plan.steps] == STEPS[table]
