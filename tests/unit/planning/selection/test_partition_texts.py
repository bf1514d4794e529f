"""Files of which the log spells the partition in another way, or not at all, are never joined; values protect both."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest

from maintainer.model.plan.plan import LeftAlone
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.plan.steps import Bin, RewriteStep
from maintainer.model.run.auto_compaction import AutoCompactSettings
from maintainer.model.table.table_facts import DataFile, PartitionValues, TableFacts, Update
from maintainer.planning.auto_compact_plan import plan_auto_compact
from maintainer.planning.operations.rewrite_choice import plan_rewrites
from maintainer.planning.plan_input import PlanOptions, TableInput
from maintainer.planning.recheck.staleness import reduce_step
from maintainer.planning.selection.file_selection import pack_bins
from maintainer.planning.selection.partition_texts import is_deltas_own
from maintainer.planning.zorder.turn_choice import choose_turn, sort_candidates
from maintainer.policy.predicate.partition_predicate import parse_predicate
from maintainer.policy.resolve.resolved import (
    OptimizePolicy,
    PurgePolicy,
    RewritePolicy,
    ZOrderMode,
    ZOrderPolicy,
)
from tests.support.tables.builders import NEVER_TOUCHED, NOW_MS, make_facts, make_file, make_optimize, make_policy
from tests.support.tables.curve_lake import revision_of, settings_of

VALUE: PartitionValues = (("ts", "2020-05-05 00:00:00"),)
ZONED, LONG = "2020-05-05T00:00:00.000000Z", "2020-05-05 00:00:00.000000"


def spelled(name: str, text: str | None, *, deleted: int = 0) -> DataFile:
    """A file of 20 bytes of the one value, with the text that the log has for it; without any for an empty text."""
    file = make_file(name, size=20, partition=dict(VALUE), deleted=deleted)
    stored: PartitionValues = (("ts", text),) if text else ()
    return replace(file, stored_values=None if stored == VALUE else stored)


def facts_of(*files: DataFile) -> TableFacts:
    return make_facts(files=files, columns={"id": "long", "ts": "timestamp"}, partitioned_by=("ts",))


MIXED = facts_of(
    *(
        spelled(f"{name}{number}", text)
        for name, text in (("zoneless", VALUE[0][1]), ("zoned", ZONED), ("long", LONG))
        for number in range(2)
    )
)


def rewrites(
    facts: TableFacts, optimize: OptimizePolicy, *, by_commands: bool = False
) -> tuple[tuple[RewriteStep, ...], tuple[LeftAlone, ...]]:
    options = PlanOptions(deletes=not by_commands)
    table = TableInput(make_policy(optimize=optimize), facts, NEVER_TOUCHED, NOW_MS, date(2026, 11, 21), options)
    steps, left_alone, _ = plan_rewrites(table)
    return steps, left_alone


def names(bins: tuple[Bin, ...]) -> set[frozenset[str]]:
    return {frozenset(file.path for file in bin_.files) for bin_ in bins}


APART = {frozenset({f"{name}0", f"{name}1"}) for name in ("zoneless", "zoned", "long")}


@pytest.mark.parametrize(
    "optimize",
    [
        make_optimize(),
        make_optimize(zorder=ZOrderPolicy(("id",), ZOrderMode.FULL)),
        make_optimize(rewrite=RewritePolicy(num_files=1)),
    ],
    ids=["compaction", "zorder", "rewrite"],
)
def test_each_text_is_a_bin_and_the_plan_says_why(optimize: OptimizePolicy) -> None:
    (step,), left_alone = rewrites(MIXED, optimize)
    assert names(step.bins) == APART
    (why,) = [entry for entry in left_alone if entry.reason.code is ReasonCode.SPELLED_APART]
    assert (why.num_files, why.size_bytes) == (0, 0)
    assert why.reason.text == (
        "partition ts=2020-05-05 00:00:00 is spelled in several ways in the log: "
        f'"{VALUE[0][1]}", "{LONG}" and "{ZONED}"; files of each stay apart, '
        "because readers in other time zones read these as different values"
    )


def test_times_of_which_none_names_a_zone_are_one_moment_to_every_reader() -> None:
    facts = facts_of(*(spelled(f"{text}{n}", text) for text in (VALUE[0][1], LONG) for n in range(2)))
    _, left_alone = rewrites(facts, make_optimize())
    (why,) = [entry.reason.text for entry in left_alone if entry.reason.code is ReasonCode.SPELLED_APART]
    assert why.endswith("files of each stay apart, because not every reader is known to read these as one value")


def test_a_purge_of_several_texts() -> None:
    files = (spelled(f"{text}{n}", text, deleted=50) for text in (ZONED, LONG) for n in range(2))
    optimize = make_optimize(min_size=1, max_deleted_rows_ratio=1.0, purge=PurgePolicy(0.1, False))
    (step,), _ = rewrites(facts_of(*files), optimize)
    assert names(step.bins) == {frozenset({f"{text}0", f"{text}1"}) for text in (ZONED, LONG)}


def test_the_hook_keeps_texts_apart_and_leaves_lost_values() -> None:
    facts = replace(MIXED, files=(*MIXED.files, spelled("lost0", ""), spelled("lost1", "")))
    decision = plan_auto_compact(facts, AutoCompactSettings(2, 50, 100, True), {VALUE}, now_ms=NOW_MS)
    assert decision.step is not None
    assert names(decision.step.bins) == APART


def test_a_turn_of_incremental_zorder_keeps_texts_apart_and_leaves_lost_values() -> None:
    revision = revision_of([(x, y) for x in range(16) for y in range(16)], max_bits=4)
    settings = settings_of(revision)
    files = (*MIXED.files, spelled("lost0", ""), spelled("lost1", ""))
    chosen = choose_turn(settings, sort_candidates(files, settings, revision, revision, {}), revision, revision)
    assert chosen is not None
    assert names(chosen.batch.bins) == APART


def test_other_types_are_apart_too_and_the_reason_speaks_of_no_zone() -> None:
    facts = make_facts(
        files=(
            replace(make_file(f"{text}{n}", size=20, partition={"p": None}), stored_values=stored)
            for text, stored in (("null", None), ("empty", (("p", ""),)))
            for n in range(2)
        ),
        columns={"id": "long", "p": "integer"},
        partitioned_by=("p",),
    )
    (step,), left_alone = rewrites(facts, make_optimize())
    assert names(step.bins) == {frozenset({"null0", "null1"}), frozenset({"empty0", "empty1"})}
    (said,) = [entry.reason.text for entry in left_alone]
    assert said == (
        'partition p=null is spelled in several ways in the log: null and ""; files of each stay apart, '
        "because not every reader is known to read these as one value"
    )


def test_what_protects_a_partition_goes_by_its_value() -> None:
    young = replace(spelled("young", ZONED), modification_time_ms=NOW_MS)
    facts = replace(MIXED, files=(*MIXED.files, young))
    for optimize in (
        make_optimize(quiet_for_seconds=60),
        make_optimize(skip_newest_partitions=1),
        make_optimize(where=parse_predicate("ts < '2020-05-05 00:00:00'")),
    ):
        assert rewrites(facts, optimize)[0] == ()
    update = Update(6, NOW_MS - 1000, "DELETE", frozenset({VALUE}))
    assert rewrites(replace(MIXED, updates=(update,)), make_optimize(quiet_after_updates_seconds=60))[0] == ()


def test_files_without_a_value_in_the_log_are_left_and_named_whatever_where_says() -> None:
    def file(name: str, *stored: tuple[str, str | None], records: int | None = 3) -> DataFile:
        values = {"k": dict(stored).get("k"), "day": dict(stored).get("day")}
        made = make_file(name, size=20, partition=values, records=records)
        return replace(made, stored_values=None if len(stored) == 2 else stored)

    lost = [file(f"k=7/day=a/{number}", ("day", "a")) for number in range(2)]
    null = [file(f"k=__HIVE_DEFAULT_PARTITION__/day=a/{n}", ("k", None), ("day", "a")) for n in range(2)]
    bare = [file("elsewhere/1", records=None)]
    facts = make_facts(files=(*lost, *null, *bare), columns={"id": "long", "k": "long"}, partitioned_by=("k", "day"))
    for optimize in (make_optimize(), make_optimize(where=parse_predicate("k IS NULL"))):
        steps, left_alone = rewrites(facts, optimize)
        assert names(steps[0].bins) == {frozenset(one.path for one in null)}
        assert [(entry.num_files, entry.reason.text) for entry in left_alone] == [
            (2, "2 files (6 rows) without a value of k in the log, read as null; their folder says k=7"),
            (
                1,
                "1 file (rows that nobody counted) without a value of k and day in the log, read as null; "
                "their folder does not say it",
            ),
        ]
    with pytest.raises(ValueError, match="knows the partition"):
        Bin(tuple(lost))


def test_a_bin_is_of_one_text() -> None:
    with pytest.raises(ValueError, match="spelled in one way"):
        Bin((spelled("a", ZONED), spelled("b", LONG)))
    with pytest.raises(ValueError, match="one spelling"):
        pack_bins((spelled("a", ZONED), spelled("b", LONG)), max_bin_bytes=100)


def test_a_bin_whose_text_is_another_one_by_now_is_dropped() -> None:
    (step,), _ = rewrites(MIXED, make_optimize())
    assert reduce_step(step, MIXED) == (step, [])
    first, second, *others = MIXED.files
    respelled = replace(second, stored_values=(("ts", LONG),))
    reduced, dropped = reduce_step(step, replace(MIXED, files=(first, respelled, *others)))
    assert reduced is not None
    assert names(reduced.bins) == APART - {frozenset({"zoneless0", "zoneless1"})}  # type: ignore[union-attr]
    assert [entry.reason.code for entry in dropped] == [ReasonCode.NO_LONGER_LIVE]


DELTAS_OWN = {
    "string": ("a", " ", "null"),
    "integer": ("0", "7", "-12", None),
    "double": ("1.0", "0.001", "-9999.5", "NaN", "-Infinity"),
    "decimal(10,2)": ("1.00", "-12.50"),
    "decimal(5,0)": ("7",),
    "boolean": ("true", "false"),
    "date": ("2020-05-05", "0001-01-01"),
    "timestamp": ("2020-05-05T00:00:00.000000Z",),
    "timestamp_ntz": ("2020-05-05 00:00:00", "2020-05-05 00:00:00.5"),
}
OTHERS = {
    "string": ("",),
    "integer": ("", "01", "+1", " 1", "-0", "1.0", "1\u0660"),
    "double": ("1", "-0.0", "1e3", "nan", "0.10", "12345678.0", "0.0001", "1\u0660.0"),
    "decimal(10,2)": ("1.0", "1", "01.00", "1E+2", "-0.00x", "1\u0660.00"),
    "decimal(38,18)": ("0.000000000000000001",),
    "boolean": ("TRUE", "1"),
    "date": ("2020-5-5", "20200505", "2020-13-01", "2020-05-05 "),
    "timestamp": ("2020-05-05 00:00:00", "2020-05-05T00:00:00Z", "2020-13-05T00:00:00.000000Z"),
    "timestamp_ntz": ("2020-05-05 00:00:00.000000", "2020-05-05T00:00:00", "2020-05-05 00:00:00.50"),
    "binary": ("", "a"),
}


@pytest.mark.parametrize(
    ("type_name", "text", "expected"),
    [
        *((name, text, True) for name, texts in DELTAS_OWN.items() for text in texts),
        *((name, text, False) for name, texts in OTHERS.items() for text in texts),
    ],
)
def test_texts_that_delta_writes_itself(type_name: str, text: str | None, expected: bool) -> None:
    """What Delta itself makes of these texts is asked in the tests with Spark."""
    assert is_deltas_own(text, type_name) is expected


def taken_by_commands(type_name: str, *texts: str | None) -> set[str | None]:
    """The texts whose files a command is planned for; two files of each."""
    files = []
    for number, text in enumerate(texts):
        moment = text
        if text and type_name == "timestamp":
            moment = text.replace("T", " ").partition(".")[0].partition("Z")[0]
        for name in "ab":
            value = None if moment == "" and type_name not in ("string", "binary") else moment
            file = make_file(f"{number}{name}", size=20, partition={"p": value})
            files.append(file if value == text else replace(file, stored_values=(("p", text),)))
    facts = make_facts(files=files, columns={"id": "long", "p": type_name}, partitioned_by=("p",))
    steps, left_alone = rewrites(facts, make_optimize(), by_commands=True)
    taken = {dict(bin_.partition_texts)["p"] for step in steps for bin_ in step.bins}
    left = [entry for entry in left_alone if entry.reason.code is ReasonCode.SPELLING_CHANGES]
    assert sum(entry.num_files for entry in left) == 2 * (len(texts) - len(taken))
    return taken


def test_a_command_takes_only_what_it_would_spell_as_it_is() -> None:
    assert taken_by_commands("integer", "1", "2", None) == {"1", "2", None}
    assert taken_by_commands("integer", "1", "01", "2") == {"2"}
    assert taken_by_commands("integer", "", None, "2") == set()  # Spark cannot filter by such a column
    assert taken_by_commands("date", "", "2020-05-05") == set()
    assert taken_by_commands("integer", "x", "1", "2") == set()
    assert taken_by_commands("integer", "1_0", "1", "2") == set()
    assert taken_by_commands("double", "1", "1.0", "2.0") == {"2.0"}
    assert taken_by_commands("boolean", "TRUE", "true", "false") == set()
    assert taken_by_commands("string", "", "a", None) == {"a", None}
    assert taken_by_commands("binary", "", None) == {None}
    # A time without a zone may be any moment of the day before, its own and the next, as the session's zone has it.
    zoned = [f"2020-05-0{day}T12:00:00.000000Z" for day in range(3, 9)]
    assert taken_by_commands("timestamp", "2020-05-05 00:00:00", *zoned) == {zoned[0], *zoned[4:]}


def test_a_command_leaves_the_null_beside_a_lost_value() -> None:
    facts = facts_of(
        *(spelled(f"lost{n}", "") for n in range(2)),
        *(make_file(f"null{n}", size=20, partition={"ts": None}) for n in range(2)),
    )
    lost_null = replace(facts, files=tuple(replace(file, partition_values=(("ts", None),)) for file in facts.files))
    steps, left_alone = rewrites(lost_null, make_optimize(), by_commands=True)
    assert steps == ()
    assert [entry.reason.code for entry in left_alone] == [ReasonCode.LOST_VALUE, ReasonCode.SPELLING_CHANGES]
