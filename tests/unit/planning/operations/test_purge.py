"""Purge: soft-deleted rows and dropped columns, also of lone files; healthy tables are not opened; once done, done."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from datetime import date
from typing import Any

import pytest

from maintainer.model.plan.layout_tags import (
    CLUSTER_CUBE_TAG,
    DROPPED_COLUMNS_TAG,
    PACKED_TAG,
    REWRITE_TAG,
    ZCUBE_COLUMNS_TAG,
    ZCUBE_ID_TAG,
    ZORDER_TAG,
)
from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import Bin, CompactStep, PurgeStep
from maintainer.model.table.table_facts import DataFile, TableFacts, TableRecord
from maintainer.planning.needs import DroppedColumnsNeed, next_need
from maintainer.planning.plan_input import PlanOptions, TableInput
from maintainer.planning.planner import plan_table
from maintainer.planning.selection.schema_columns import CLOCK_SLACK_MS, dropped_columns_digest
from maintainer.policy.resolve.resolved import PurgePolicy, ResolvedPolicy, RewritePolicy
from tests.support.tables.builders import (
    DAY_SECONDS,
    HOUR_MS,
    NEVER_TOUCHED,
    NOW_MS,
    make_facts,
    make_file,
    make_optimize,
    make_policy,
)

TODAY = date(2026, 11, 21)
LINES = {"optimize.purge.deletedRowsRatio": 5, "optimize.purge.droppedColumns": 6, "optimize.every": 7}


def opened(table: TableInput) -> tuple[DataFile, ...]:
    """Files of which planning asks whether they hold dropped columns."""
    need = next_need(table)
    return need.files if isinstance(need, DroppedColumnsNeed) else ()


def policy_of(purge: PurgePolicy | None = PurgePolicy(), **optimize: Any) -> ResolvedPolicy:  # noqa: B008 (frozen)
    return make_policy(optimize=make_optimize(purge=purge, **optimize), lines=LINES)


def plan(facts: TableFacts, policy: ResolvedPolicy | None = None, record: TableRecord = NEVER_TOUCHED) -> TablePlan:
    return plan_table(TableInput(policy or policy_of(), facts, record, NOW_MS, TODAY))


def purge_of(planned: TablePlan) -> PurgeStep:
    (step,) = (step for step in planned.steps if isinstance(step, PurgeStep))
    return step


def bins_of(planned: TablePlan) -> list[list[list[str]]]:
    return [[[file.path for file in bin_.files] for bin_ in batch.bins] for batch in purge_of(planned).batches]


def mapped(*fields: tuple[str, int], largest: int, mode: str = "name", **facts: Any) -> TableFacts:
    """A table with column mapping: fields with their ids, and the largest id ever given."""
    schema = {
        "type": "struct",
        "fields": [
            {"name": name, "type": "long", "nullable": True, "metadata": {"delta.columnMapping.id": number}}
            for name, number in fields
        ],
    }
    properties = {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": str(largest)}
    made = make_facts(properties=properties, **facts)
    return replace(made, schema_json=json.dumps(schema), columns=tuple(name for name, _ in fields))


class TestDeletedRows:
    def test_a_lone_file_with_one_deleted_row_is_purged(self) -> None:
        files = (make_file("dirty", size=90, deleted=1), make_file("clean", size=90))
        planned = plan(make_facts(files=files))
        assert bins_of(planned) == [[["dirty"]]]
        step = purge_of(planned)
        assert (step.num_files_added, step.file_tags) == (1, ((PACKED_TAG, "100"),))
        text = "1 file with more than 0% of its rows deleted"
        assert step.reasons == (Reason(ReasonCode.DELETED_ROWS, text, "orders.yml:5"),)
        assert [(left.reason.code, left.num_files) for left in planned.left_alone] == [(ReasonCode.AT_TARGET, 1)]

    def test_without_the_map_it_is_left(self) -> None:
        facts = make_facts(files=(make_file("dirty", size=90, deleted=1),))
        assert plan(facts, policy_of(None)).steps == ()

    @pytest.mark.parametrize(("deleted", "due"), [(10, False), (11, True)])
    def test_the_ratio_is_strict(self, deleted: int, due: bool) -> None:
        facts = make_facts(files=(make_file("f", size=90, deleted=deleted),))
        policy = policy_of(PurgePolicy(0.1), max_deleted_rows_ratio=1.0)
        assert bool(plan(facts, policy).steps) is due

    def test_a_vector_without_statistics_is_for_compaction_which_takes_it_anyway(self) -> None:
        facts = make_facts(files=(make_file("f", size=90, deleted=1, records=None),))
        (step,) = plan(facts, policy_of(PurgePolicy(0.9), max_deleted_rows_ratio=1.0)).steps
        assert isinstance(step, CompactStep)

    def test_what_compaction_takes_is_purged_by_it(self) -> None:
        files = (make_file("a", size=10, deleted=1), make_file("b", size=10), make_file("c", size=90, deleted=1))
        planned = plan(make_facts(files=files))
        compact, purge = planned.steps
        assert isinstance(compact, CompactStep)
        assert [file.path for file in compact.batches[0].files] == ["a", "b"]
        assert isinstance(purge, PurgeStep)
        assert [file.path for file in purge.batches[0].files] == ["c"]
        assert planned.left_alone == ()

    def test_files_are_packed_up_to_the_size_within_a_partition(self) -> None:
        files = [make_file(f"{p}{i}", size=48, deleted=1, partition={"p": p}) for p in "ab" for i in range(3)]
        facts = make_facts(files=[replace(file, size_bytes=48) for file in files], partitioned_by=("p",))
        planned = plan(facts, policy_of(min_size=1))
        assert bins_of(planned) == [[["a2"], ["b2"], ["a0", "a1"], ["b0", "b1"]]]

    def test_ordered_files_are_purged_one_by_one_and_keep_what_says_so(self) -> None:
        marks = (
            {ZORDER_TAG: '["id"]'},
            {REWRITE_TAG: "x"},
            {ZCUBE_ID_TAG: "c", ZCUBE_COLUMNS_TAG: "[]", CLUSTER_CUBE_TAG: "1"},
        )
        for tags in marks:
            others = {PACKED_TAG: "100", "INSERTION_TIME": "1", DROPPED_COLUMNS_TAG: "old"}
            files = [make_file(f"f{i}", size=20, deleted=1, tags={**tags, **others}) for i in range(2)]
            planned = plan(make_facts(files=files), policy_of(min_size=1))
            assert bins_of(planned) == [[["f0"], ["f1"]]]
            step = purge_of(planned)
            assert dict(step.row_order_tags(step.batches[0].bins[0])) == tags
            assert step.row_order_tags(Bin(tuple(files))) == ()

    def test_no_file_is_compared_with_the_others(self) -> None:
        # Of 90,000 files in an order each would be, field by field, with all of those before it.
        class Uncompared(DataFile):
            def __eq__(self, other: object) -> bool:
                raise AssertionError("files are told apart by their keys")

            __hash__ = None  # type: ignore[assignment]

        marks: tuple[dict[str, str], ...] = ({ZORDER_TAG: '["id"]'}, {})
        files = [make_file(f"f{i}", size=20, deleted=1, tags=marks[i % 2]) for i in range(4)]
        uncompared = [Uncompared(*(getattr(file, field.name) for field in fields(file))) for file in files]
        planned = plan(make_facts(files=uncompared), policy_of(min_size=1))
        assert bins_of(planned) == [[["f0"], ["f2"], ["f1", "f3"]]]

    def test_not_before_it_is_due_and_never_over_a_limit(self) -> None:
        facts = make_facts(files=(make_file("f", size=90, deleted=1),))
        recent = TableRecord(last_optimize_at_ms=NOW_MS - HOUR_MS)
        assert plan(facts, policy_of(every_seconds=DAY_SECONDS), recent).steps == ()
        limited = make_policy(optimize=make_optimize(purge=PurgePolicy()), max_bytes=50)
        assert plan(facts, limited).state == "blocked"


class TestDroppedColumns:
    def test_only_ids_that_the_schema_lacks_mean_that_a_column_was_dropped(self) -> None:
        assert dropped_columns_digest(make_facts()) is None
        assert dropped_columns_digest(mapped(("a", 1), ("b", 2), largest=2)) is None
        assert dropped_columns_digest(mapped(("a", 1), largest=2, mode="none")) is None
        digest, other = (dropped_columns_digest(mapped(("x", column_id), largest=2)) for column_id in (1, 2))
        assert digest is not None
        assert other not in (None, digest)
        # A column added later changes nothing.
        assert dropped_columns_digest(mapped(("x", 1), ("y", 3), largest=3)) == digest

    def test_ids_of_nested_fields_count_too(self) -> None:
        inner = {"name": "b", "type": "long", "nullable": True, "metadata": {"delta.columnMapping.id": 2}}
        array = {"type": "array", "elementType": {"type": "struct", "fields": [inner]}, "containsNull": True}
        outer = {"name": "a", "type": array, "nullable": True, "metadata": {"delta.columnMapping.id": 1}}
        facts = replace(mapped(largest=2), schema_json=json.dumps({"type": "struct", "fields": [outer]}))
        assert dropped_columns_digest(facts) is None
        assert dropped_columns_digest(replace(facts, schema_json=facts.schema_json.replace('id": 2', 'id": 1')))

    def test_nothing_is_opened_where_no_column_was_dropped_or_nobody_asks(self) -> None:
        healthy = mapped(("a", 1), largest=1, files=[make_file("f")])
        assert opened(TableInput(policy_of(), healthy, NEVER_TOUCHED, NOW_MS, TODAY)) == ()
        dropped = mapped(("a", 1), largest=2, files=[make_file("f")])
        assert [file.path for file in opened(TableInput(policy_of(), dropped, NEVER_TOUCHED, NOW_MS, TODAY))] == ["f"]
        for policy in (policy_of(None), policy_of(PurgePolicy(dropped_columns=False))):
            assert opened(TableInput(policy, dropped, NEVER_TOUCHED, NOW_MS, TODAY)) == ()
        recent = TableRecord(last_optimize_at_ms=NOW_MS - HOUR_MS)
        daily = policy_of(every_seconds=DAY_SECONDS)
        assert opened(TableInput(daily, dropped, recent, NOW_MS, TODAY)) == ()
        assert opened(TableInput(daily, dropped, recent, NOW_MS, TODAY, PlanOptions(ignore_every=True)))
        assert opened(TableInput(policy_of(), dropped, TableRecord(quarantined="x"), NOW_MS, TODAY)) == ()

    def test_our_own_files_and_later_ones_are_known(self) -> None:
        facts = mapped(("a", 1), largest=2)
        digest = dropped_columns_digest(facts)
        assert digest is not None
        files = [
            make_file("old", modified_at_ms=1000),
            make_file("ours", modified_at_ms=2000, tags={DROPPED_COLUMNS_TAG: digest}),
            make_file("other", modified_at_ms=2000, tags={DROPPED_COLUMNS_TAG: "another"}),
            make_file("close", modified_at_ms=2000 + CLOCK_SLACK_MS),
            make_file("later", modified_at_ms=2001 + CLOCK_SLACK_MS),
        ]
        files_opened = opened(TableInput(policy_of(), replace(facts, files=tuple(files)), NEVER_TOUCHED, NOW_MS, TODAY))
        assert [file.path for file in files_opened] == ["old", "other", "close"]

    def test_files_that_hold_them_are_purged_also_alone(self) -> None:
        files = (make_file("a", size=90), make_file("b", size=90))
        facts = replace(mapped(("x", 1), largest=2, files=files), files_with_dropped_columns=frozenset({files[0].key}))
        planned = plan(facts)
        assert bins_of(planned) == [[["a"]]]
        text = "1 file with columns that were dropped"
        assert purge_of(planned).reasons == (Reason(ReasonCode.DROPPED_COLUMNS, text, "orders.yml:6"),)
        assert plan(facts, policy_of(PurgePolicy(dropped_columns=False))).steps == ()
        assert plan(replace(facts, files_with_dropped_columns=None)).steps == ()


class TestByCommands:
    def test_what_no_command_does_is_left_alone_with_the_reason(self) -> None:
        facts = mapped(("a", 1), largest=2, files=[make_file("f", size=90, deleted=1), make_file("g", size=90)])
        options = PlanOptions(deletes=False)
        assert opened(TableInput(policy_of(), facts, NEVER_TOUCHED, NOW_MS, TODAY, options)) == ()
        planned = plan_table(TableInput(policy_of(), facts, NEVER_TOUCHED, NOW_MS, TODAY, options))
        assert bins_of(planned) == [[["f"]]]
        (left,) = (left for left in planned.left_alone if left.reason.code is ReasonCode.NOT_BY_ENGINE)
        assert left.reason.text.startswith("dropped columns: ")
        rewriting = policy_of(None, rewrite=RewritePolicy(num_files=4))
        planned = plan_table(TableInput(rewriting, facts, NEVER_TOUCHED, NOW_MS, TODAY, options))
        assert planned.steps == ()
        assert [(left.reason.code, left.num_files) for left in planned.left_alone] == [(ReasonCode.NOT_BY_ENGINE, 2)]
