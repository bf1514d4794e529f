"""Planning incremental Z-order: the revision as a visible step, the first turn, what waits, what is refused."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from maintainer.model.plan.layout_tags import CURVE_CUBE_TAG, ELEMENTS_TAG, REVISION_TAG, STRATEGY_TAG
from maintainer.model.plan.plan import TablePlan
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.plan.steps import PurgeStep, SetPropertiesStep, ZOrderStep
from maintainer.model.plan.zorder_turn import Strategy
from maintainer.model.table.table_facts import ColumnRanges, ColumnSample, DataFile, DeletionVector, TableFacts
from maintainer.planning.curve.revision import Revision, make_column, read_revision
from maintainer.planning.plan_input import TableInput
from maintainer.planning.planner import plan_table
from maintainer.planning.zorder.incremental_zorder import loop_columns, next_turn
from maintainer.planning.zorder.zorder_options import layout_of, ranges_wanted, sample_wanted
from maintainer.policy.resolve.resolved import PurgePolicy, ResolvedPolicy, WorthPolicy, ZOrderPolicy
from tests.support.tables.builders import NEVER_TOUCHED, NOW_MS, make_facts, make_file, make_optimize, make_policy

COLUMNS = {"id": "long", "day": "date", "name": "string", "flag": "boolean", "tags": {"type": "array"}}
LINES = {"optimize.zorder": 7, "optimize.zorder.columns": 8}
SAMPLE = {
    "id": tuple(str(number) for number in range(1000)),
    "day": tuple(f"2026-01-{number % 28 + 1:02}" for number in range(1000)),
    "name": tuple(f"n{number % 50}" for number in range(1000)),
}
REVISION = Revision(1, (make_column("id", "long", SAMPLE["id"]), make_column("day", "date", SAMPLE["day"])))


def policy_of(*columns: str, optimize: dict[str, Any] | None = None, **zorder: Any) -> ResolvedPolicy:
    found = ZOrderPolicy(columns or ("id", "day"), **zorder)
    return make_policy(optimize=make_optimize(zorder=found, max_size=1000, **(optimize or {})), lines=LINES)


def facts_of(*files: DataFile, properties: dict[str, str] | None = None, **others: Any) -> TableFacts:
    return make_facts(
        files=files, columns=COLUMNS, properties=properties, columns_with_stats=("id", "day", "name", "flag"), **others
    )


def read(
    policy: ResolvedPolicy, facts: TableFacts, sample: dict[str, tuple[str | None, ...]] | None = None
) -> TableFacts:
    """What the application reads before planning."""
    columns = ranges_wanted(policy, facts)
    if columns and facts.column_ranges is None:
        facts = replace(facts, column_ranges=ColumnRanges(columns, {}))
    wanted = sample_wanted(policy, facts)
    values = tuple((sample or SAMPLE)[name] for name in wanted)
    return replace(facts, column_sample=ColumnSample(wanted, values)) if wanted else facts


def plan(policy: ResolvedPolicy, facts: TableFacts, **others: Any) -> TablePlan:
    return plan_table(TableInput(policy, read(policy, facts, **others), NEVER_TOUCHED, NOW_MS, date(2026, 11, 21)))


def zorder_of(planned: TablePlan) -> ZOrderStep:
    assert planned.problem is None, planned.problem
    (step,) = [step for step in planned.steps if isinstance(step, ZOrderStep)]
    return step


def tagged(path: str, cube: str, elements: int, *, strategy: str = "unindexed", size: int = 100) -> DataFile:
    tags = {REVISION_TAG: REVISION.tag, CURVE_CUBE_TAG: cube, ELEMENTS_TAG: str(elements), STRATEGY_TAG: strategy}
    return make_file(path, size=size, records=elements, tags=tags)


def known(*files: DataFile, **properties: str) -> TableFacts:
    return facts_of(*files, properties={REVISION.property_name: REVISION.to_json(), **properties})


def codes(planned: TablePlan) -> list[ReasonCode]:
    return [left.reason.code for left in planned.left_alone]


def counted(planned: TablePlan, facts: TableFacts) -> None:
    """Every live file is in the turn, or counted once in what is left alone."""
    taken = sum(len(batch.files) for step in planned.steps if isinstance(step, ZOrderStep) for batch in step.batches)
    assert taken + sum(left.num_files for left in planned.left_alone) == len(facts.files)


def files(*sizes: int) -> Iterable[DataFile]:
    return [make_file(f"f{n}", size=size, modified_at_ms=NOW_MS - n) for n, size in enumerate(sizes)]


def test_the_first_plan_makes_a_revision_as_a_step_that_can_be_seen() -> None:
    facts = facts_of(*files(500, 500, 500))
    planned = plan(policy_of(), facts)
    properties, step = planned.steps
    assert isinstance(properties, SetPropertiesStep)
    ((name, text),) = properties.after
    assert (name, properties.before) == ("maintainer.zorder.revision.1", ((name, None),))
    assert read_revision(name, text) == REVISION
    assert [reason.code for reason in properties.reasons] == [ReasonCode.NEW_REVISION]
    assert properties.reasons[0].text == "maintainer.zorder.revision.1: id in 256 ranges, day in 28 ranges"
    assert isinstance(step, ZOrderStep)
    assert step.turn is not None
    assert (step.turn.strategy, step.turn.revision, step.turn.num_files) == (Strategy.UNINDEXED, REVISION.tag, (2,))
    assert step.reasons[0].code is ReasonCode.UNINDEXED_FILES
    assert step.reasons[0].origin == "orders.yml:7"
    counted(planned, facts)


def test_a_table_of_one_file_needs_no_revision() -> None:
    planned = plan(policy_of(), facts_of(*files(1999)))
    assert planned.state == "up_to_date"
    assert codes(planned) == [ReasonCode.NO_PARTNER]


def test_a_revision_that_is_there_is_used_again() -> None:
    facts = known(*files(500, 500))
    policy = policy_of()
    assert sample_wanted(policy, facts) == ()
    planned = plan(policy, facts)
    assert [step.kind for step in planned.steps] == ["zorder"]
    assert zorder_of(planned).columns == ("id", "day")


def test_other_columns_make_a_new_revision_and_old_files_move_over() -> None:
    facts = known(tagged("a", "0", 500), tagged("b", "1", 500))
    planned = plan(policy_of("name"), facts)
    properties, step = planned.steps
    assert isinstance(properties, SetPropertiesStep)
    assert properties.after[0][0] == "maintainer.zorder.revision.2"
    assert isinstance(step, ZOrderStep)
    assert {file.path for file in step.batches[0].files} == {"a", "b"}


@pytest.mark.parametrize("text", ["", "{}", REVISION.to_json()[:-5]])
def test_a_damaged_property_is_no_error_but_a_new_revision(text: str) -> None:
    facts = facts_of(tagged("a", "0", 500), tagged("b", "1", 500), properties={REVISION.property_name: text})
    properties, step = plan(policy_of(), facts).steps
    assert isinstance(properties, SetPropertiesStep)
    assert properties.after[0][0] == "maintainer.zorder.revision.2"
    assert isinstance(step, ZOrderStep)
    assert len(step.batches[0].files) == 2


@pytest.mark.parametrize(("escaped_bytes", "makes_new"), [(100, False), (400, True)])
def test_values_that_outgrow_the_boundaries_make_a_new_revision(escaped_bytes: int, makes_new: bool) -> None:
    inside, outside = tagged("in", "0", 500, size=1000), make_file("out", size=escaped_bytes)
    ranges = {
        inside.key: (("0", "900", False), ("2026-01-01", "2026-01-28", False)),
        outside.key: (("0", "900", False), ("2026-02-01", "2026-03-28", False)),
    }
    facts = replace(known(inside, outside), column_ranges=ColumnRanges(("id", "day"), ranges))
    assert bool(sample_wanted(policy_of(), facts)) is makes_new


def test_later_turns_are_planned_from_the_table_as_it_is() -> None:
    facts = known(*files(600, 600, 600))
    step = zorder_of(plan(policy_of(batch_bytes=1200), facts))
    assert [file.path for file in step.batches[0].files] == ["f2", "f1"]
    later = known(tagged("x", "0", 600, size=600), tagged("y", "1", 600, size=600), *list(files(600, 600, 600))[:1])
    following = next_turn(step, later, spent_bytes=1200)
    assert following is not None
    assert [file.path for file in following.batches[0].files] == ["f0"]
    assert next_turn(step, known(tagged("x", "0", 6), tagged("y", "1", 6)), spent_bytes=0) is None
    assert next_turn(step, facts_of(*files(600)), spent_bytes=0) is None


def test_the_budget_of_the_table_bounds_all_turns_together() -> None:
    policy = replace(policy_of(), limits=replace(policy_of().limits, max_bytes=1000))
    facts = known(*files(600, 600))
    step = zorder_of(plan(policy, facts))
    assert len(step.batches[0].files) == 1
    assert next_turn(step, facts, spent_bytes=600) is None
    assert next_turn(step, facts, spent_bytes=400) is not None


def test_why_names_level_cube_and_group_and_why_others_wait() -> None:
    facts = known(
        *[tagged(f"ready{n}", "01", 60) for n in range(2)],
        *[tagged(f"next{n}", "011", 60) for n in range(2)],
        *[tagged(f"small{n}", "1", 30) for n in range(2)],
        tagged("done", "00", 5000, strategy="pieces", size=1000),
    )
    planned = plan(policy_of(strategies=(Strategy.LEVELED,), bytes_per_iteration=200), facts)
    step = zorder_of(planned)
    assert [reason.text for reason in step.reasons] == [
        "leveled: level 1, cube 01 of revision 1: 2 files with 120 elements, at least 100"
    ]
    assert [(left.reason.code, left.reason.text) for left in planned.left_alone] == [
        (
            ReasonCode.WAITS_FOR_TURN,
            "level 1, cube 011: 2 blocks with 120 elements, after lower levels and wider cubes",
        ),
        (ReasonCode.BELOW_NEXT_LEVEL, "level 1, cube 1: 2 blocks with 60 elements, fewer than 100"),
        (ReasonCode.SAME_ZORDER, "1 file on the Z-order curve of id, day (revision 1)"),
    ]
    counted(planned, facts)


def test_small_groups_of_one_level_are_one_turn_with_a_bin_each() -> None:
    facts = known(
        *[tagged(f"first{n}", "01", 60) for n in range(2)],
        *[tagged(f"second{n}", "011", 70) for n in range(2)],
        tagged("done", "00", 5000, strategy="pieces", size=1000),
    )
    step = zorder_of(plan(policy_of(strategies=(Strategy.LEVELED,)), facts))
    assert step.turn is not None
    assert (step.turn.elements, step.turn.level, step.turn.cube, len(step.turn.num_files)) == (260, 1, "01", 2)
    assert [[file.path for file in one.files] for one in step.batches[0].bins] == [
        ["first0", "first1"],
        ["second0", "second1"],
    ]
    assert [reason.text for reason in step.reasons] == [
        "leveled: level 1, cube 01 of revision 1: 2 files with 120 elements, at least 100; "
        "with it 1 small group of its level"
    ]


def test_when_holds_unindexed_files_back_but_not_the_rest() -> None:
    facts = known(*files(100, 100), *[tagged(f"r{n}", "01", 60) for n in range(2)])
    policy = policy_of(optimize={"when": WorthPolicy(min_small_files=3)})
    planned = plan(policy, facts)
    assert zorder_of(planned).turn is not None
    assert zorder_of(planned).turn.strategy is Strategy.LEVELED  # type: ignore[union-attr]
    assert ReasonCode.NOT_WORTH_IT in codes(planned)
    counted(planned, facts)


def test_one_revision_can_be_worked_on_by_itself() -> None:
    second = Revision(2, (make_column("name", "string", SAMPLE["name"]),))
    facts = known(*[tagged(f"r{n}", "01", 60) for n in range(2)], **{second.property_name: second.to_json()})
    planned = plan(policy_of("name", revision=1), facts)
    assert zorder_of(planned).turn.strategy is Strategy.LEVELED  # type: ignore[union-attr]
    assert zorder_of(planned).turn.revision == REVISION.tag  # type: ignore[union-attr]
    refused = plan(policy_of("name", revision=9), facts).problem
    assert refused is not None
    assert (refused.code, refused.what) == ("T426", "the table has no Z-order revision 9 (found: 1, 2)")


def test_revision_zero_puts_files_on_the_curve_and_does_nothing_else() -> None:
    facts = known(*[tagged(f"r{n}", "01", 60) for n in range(2)])
    assert plan(policy_of(revision=0), facts).state == "up_to_date"
    assert zorder_of(plan(policy_of(revision=0), known(*files(100, 100)))).turn is not None


@pytest.mark.parametrize(
    ("columns", "code", "what"),
    [
        (("nope",), "T411", "Z-order column `nope` does not exist (found: nope)"),
        (("tags",), "T414", "Z-order column `tags` has a type without order (found: tags array)"),
        (
            ("id", "flag"),
            "T427",
            "Z-order column `flag` has a type of which the log keeps no smallest and largest",
        ),
    ],
)
def test_columns_are_refused_by_name(columns: tuple[str, ...], code: str, what: str) -> None:
    problem = plan(policy_of(*columns), facts_of(*files(500, 500))).problem
    assert problem is not None
    assert problem.code == code
    assert problem.what.startswith(what)
    assert problem.where == "orders.yml:8"


NOTHING = "no Z-order column has values that differ: there is nothing to put in order"


@pytest.mark.parametrize(
    ("values", "what"),
    [
        (
            ("x",) * 50,
            f"{NOTHING} (found: name: always x)",
        ),
        (
            (None,) * 50,
            f"{NOTHING} (found: name: all null)",
        ),
        (
            tuple(f"{'p' * 40}{n}" for n in range(50)),
            "Z-order column `name` differs only behind the first 32",
        ),
    ],
)
def test_values_that_cannot_be_ordered_are_refused_by_name(values: tuple[str | None, ...], what: str) -> None:
    problem = plan(policy_of("name"), facts_of(*files(500, 500)), sample={"name": values}).problem
    assert problem is not None
    assert problem.code == "T428"
    assert problem.what.startswith(what)


def test_a_constant_column_beside_another_costs_nothing() -> None:
    planned = plan(policy_of(), facts_of(*files(500, 500)), sample={**SAMPLE, "day": ("2026-01-01",) * 1000})
    assert zorder_of(planned).columns == ("id", "day")
    properties = planned.steps[0]
    assert isinstance(properties, SetPropertiesStep)
    assert properties.reasons[0].text.endswith("id in 256 ranges, day in 1 ranges")


AUTO = "use.optimization.autoOptimize."


def honoured(*found: DataFile, **zorder: Any) -> ResolvedPolicy:
    return policy_of(honour_table_properties=True, **zorder)


def test_properties_of_the_table_count_only_where_the_policy_says_so() -> None:
    facts = known(*files(100, 100), **{f"{AUTO}enabled": "false"})
    assert plan(policy_of(), facts).state == "changes"
    planned = plan(honoured(), facts)
    assert planned.state == "up_to_date"
    assert codes(planned) == [ReasonCode.OFF_ON_TABLE]


def test_the_example_of_the_guide() -> None:
    facts = known(
        make_file("old", size=100, modified_at_ms=1_672_531_199_999),
        make_file("new", size=100, modified_at_ms=1_672_531_200_000),
        **{
            f"{AUTO}enabled": "true",
            f"{AUTO}optimizeUnindexedFiles.enabled": "true",
            f"{AUTO}optimizeUnindexedFiles.prioritize": "true",
            f"{AUTO}optimizeUnindexedFiles.batchBytes": "5000000000",
            f"{AUTO}optimizeUnindexedFiles.fromTimestamp": "2023-01-01 00:00:00",
        },
    )
    planned = plan(honoured(strategies=(Strategy.LEVELED,)), facts)
    step = zorder_of(planned)
    assert [file.path for file in step.batches[0].files] == ["new"]
    assert step.settings is not None
    assert step.settings.strategies == (Strategy.UNINDEXED, Strategy.LEVELED)
    assert (step.settings.batch_bytes, step.settings.from_timestamp_ms) == (5_000_000_000, 1_672_531_200_000)
    assert ReasonCode.BEFORE_TIMESTAMP in codes(planned)
    counted(planned, facts)


@pytest.mark.parametrize(
    ("properties", "strategies"),
    [
        ({}, (Strategy.UNINDEXED, Strategy.LEVELED, Strategy.PIECES)),
        ({"prioritize": "false"}, (Strategy.LEVELED, Strategy.PIECES, Strategy.UNINDEXED)),
        ({"enabled": "FALSE"}, (Strategy.LEVELED, Strategy.PIECES)),
    ],
)
def test_documented_defaults_hold(properties: dict[str, str], strategies: tuple[Strategy, ...]) -> None:
    given = {f"{AUTO}optimizeUnindexedFiles.{name}": value for name, value in properties.items()}
    facts = known(
        *files(100, 100), *[tagged(f"r{n}", "01", 60) for n in range(2)], **{f"{AUTO}enabled": "true"}, **given
    )
    settings = zorder_of(plan(honoured(), facts)).settings
    assert settings is not None
    assert settings.strategies == strategies
    assert (settings.batch_bytes, settings.from_timestamp_ms) == (10_000_000_000, 0)


REQUEST = {"use.optimization.type": "LeveledCompaction", "use.optimization.bytes-per-iter": "5000000"}


def test_a_request_by_hand_is_one_round_of_leveled_compaction() -> None:
    facts = known(*files(100, 100), *[tagged(f"r{n}", "01", 60) for n in range(2)], **REQUEST)
    assert zorder_of(plan(policy_of(), facts)).settings.request is False  # type: ignore[union-attr]
    step = zorder_of(plan(honoured(), facts))
    assert step.settings is not None
    assert step.settings.strategies == (Strategy.LEVELED, Strategy.UNINDEXED, Strategy.PIECES)
    assert step.turn is not None
    assert step.turn.strategy is Strategy.LEVELED
    off = known(*[tagged(f"r{n}", "01", 60) for n in range(2)], **REQUEST, **{f"{AUTO}enabled": "false"})
    assert zorder_of(plan(honoured(), off)).settings.strategies == (Strategy.LEVELED,)  # type: ignore[union-attr]
    assert (step.settings.bytes_per_iteration, step.settings.request) == (5_000_000, True)


def test_a_request_is_ignored_with_a_note_under_automatic_optimization() -> None:
    facts = known(*files(100, 100), **REQUEST, **{f"{AUTO}enabled": "true"})
    planned = plan(honoured(), facts)
    assert zorder_of(planned).settings.request is False  # type: ignore[union-attr]
    (note,) = [left.reason for left in planned.left_alone if left.reason.code is ReasonCode.REQUEST_IGNORED]
    assert note.text == (
        "use.optimization.type is ignored: the table is under automatic optimization "
        "(use.optimization.autoOptimize.enabled)"
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (f"{AUTO}enabled", "yes"),
        (f"{AUTO}optimizeUnindexedFiles.batchBytes", "5GB"),
        (f"{AUTO}optimizeUnindexedFiles.fromTimestamp", "yesterday"),
        (f"{AUTO}revisionId", "-1"),
        ("use.optimization.type", "Everything"),
    ],
)
def test_a_property_that_cannot_be_read_is_refused_by_name(key: str, value: str) -> None:
    facts = known(*files(100, 100), **{f"{AUTO}enabled": "true", key: value})
    problem = plan(honoured(), facts).problem
    assert problem is not None
    assert problem.code == "T418"
    assert key in problem.what


def test_figures_of_the_layout_come_with_a_revision() -> None:
    policy = policy_of()
    indexed, raw = tagged("a", "0", 500, size=300), make_file("b", size=100)
    ranges = {
        indexed.key: (("0", "400", False), ("2026-01-01", "2026-01-28", False)),
        raw.key: (("0", "999", False), ("2026-01-01", "2026-01-28", False)),
    }
    facts = replace(known(indexed, raw), column_ranges=ColumnRanges(("id", "day"), ranges))
    figures = layout_of(policy, facts)
    assert figures is not None
    assert 1 < figures.files_read < 2
    assert (figures.overlap_depth, figures.unindexed_ratio) == (1.5, 0.25)
    assert layout_of(policy, facts_of(indexed, raw)) is None
    assert layout_of(make_policy(), facts) is None


def test_a_purge_of_files_on_the_curve_leaves_them_on_it() -> None:
    """Each is written alone, in the order it has, with the tags that name its place; the next plan finds it there."""
    on_curve = [tagged(f"c{cube}", cube, 100) for cube in ("000", "001", "010", "011")]
    dirty = [replace(file, deletion_vector=DeletionVector(f"u{file.path}@1", 1, 40)) for file in on_curve]
    policy = policy_of(optimize={"purge": PurgePolicy(), "min_size": 1})
    planned = plan(policy, known(*dirty))
    (step,) = planned.steps
    assert isinstance(step, PurgeStep)
    bins = [one for batch in step.batches for one in batch.bins]
    assert [[file.path for file in one.files] for one in bins] == [["c000"], ["c001"], ["c010"], ["c011"]]
    for one in bins:
        before = dict(one.files[0].tags)
        assert dict(step.row_order_tags(one)) == {**before, ELEMENTS_TAG: "99"}
    written = [
        make_file(
            f"p{one.files[0].path}", size=100, records=99, tags=dict((*step.file_tags, *step.row_order_tags(one)))
        )
        for one in bins
    ]
    assert plan(policy, known(*written)).state == "up_to_date"


def test_a_group_of_many_cubes_that_wait_is_named_up_to_five() -> None:
    cubes = [f"{number:03b}" for number in range(8)]
    facts = known(*[tagged(f"c{cube}{n}", cube, 2, size=10) for cube in cubes for n in range(2)])
    planned = plan(policy_of(), facts)
    waiting = [left for left in planned.left_alone if left.reason.code is ReasonCode.BELOW_NEXT_LEVEL]
    assert [left.num_files for left in waiting] == [2, 2, 2, 2, 2, 4]
    assert waiting[-1].reason.text == "2 more groups of files in one cube"
    counted(planned, facts)


def test_many_deleted_rows_in_a_turn_are_a_reason_of_their_own() -> None:
    clean, dirty = make_file("a", size=500), make_file("b", size=500, records=100, deleted=50)
    reasons = zorder_of(plan(policy_of(), facts_of(clean, dirty))).reasons
    assert [reason.code for reason in reasons] == [ReasonCode.UNINDEXED_FILES, ReasonCode.DELETED_ROWS]
    assert reasons[1].text == "1 file with many deleted rows"


def test_a_step_without_turns_has_no_next_one_and_its_own_columns() -> None:
    facts = known(*files(100, 100))
    step = zorder_of(plan(policy_of(), facts))
    assert loop_columns(step, facts) == ("id", "day")
    full = replace(step, settings=None, columns=("name",))
    assert loop_columns(full, facts) == ("name",)
    assert next_turn(full, facts, spent_bytes=0) is None
    assert next_turn(step, facts, spent_bytes=0) is not None


@pytest.mark.parametrize(("spelled", "same_ms"), [("1767225600000", "2026-01-01 00:00:00"), (" 1767225600000 ", None)])
def test_a_timestamp_may_be_milliseconds(spelled: str, same_ms: str | None) -> None:
    key = f"{AUTO}optimizeUnindexedFiles.fromTimestamp"
    settings = []
    for text in (spelled, same_ms or "2026-01-01T00:00:00Z"):
        facts = known(*files(100, 100), **{f"{AUTO}enabled": "true", key: text})
        settings.append(zorder_of(plan(honoured(), facts)).settings)
    assert settings[0] is not None
    assert settings[0].from_timestamp_ms == 1_767_225_600_000
    assert settings[0] == settings[1]


def test_a_new_revision_is_never_made_without_its_sample() -> None:
    policy, facts = policy_of(), facts_of(*files(500, 500))
    columns = ("id", "day")
    ready = replace(facts, column_ranges=ColumnRanges(columns, {}))
    for sample in (None, ColumnSample(("day", "id"), ((), ()))):
        with pytest.raises(ValueError, match="needs a sample"):
            plan_table(
                TableInput(policy, replace(ready, column_sample=sample), NEVER_TOUCHED, NOW_MS, date(2026, 11, 21))
            )


def test_a_request_by_hand_is_due_whatever_the_pace() -> None:
    leveled = [tagged(f"r{n}", "01", 60) for n in range(2)]
    record = replace(NEVER_TOUCHED, last_optimize_at_ms=NOW_MS - 1000)
    policy = honoured()
    policy = replace(policy, optimize=replace(policy.optimize, every_seconds=86_400))
    for properties, due in ((REQUEST, True), ({}, False)):
        facts = read(policy, known(*files(100, 100), *leveled, **properties))
        planned = plan_table(TableInput(policy, facts, record, NOW_MS, date(2026, 11, 21)))
        assert any(isinstance(step, ZOrderStep) for step in planned.steps) is due
