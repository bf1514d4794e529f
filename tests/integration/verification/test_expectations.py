"""Checks after a commit on real Spark, Delta and Great Expectations: pass, fail, could not be checked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.support.product import (
    Batch,
    CheckedExpectation,
    Checks,
    ContentCheck,
    DeltaEngine,
    DeltaTableEngine,
    EnvironmentUnfit,
    GreatExpectationsVerifier,
    Journal,
    Pair,
    ProjectError,
    RunOutcome,
    SessionLease,
    TableFacts,
    TableRef,
    TableStatus,
    Verdict,
    Verification,
    run_fleet,
)
from tests.support.product import great_expectations_suite as gx
from tests.support.runs.planned_steps import plan_all, plan_for
from tests.support.tables.builders import NOW_MS
from tests.support.tables.delta_tables import compaction, spark_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.sampled(3), pytest.mark.nightly]


@pytest.fixture(scope="module")
def engine(lease: SessionLease) -> Iterator[DeltaTableEngine]:
    with DeltaEngine(lease).worker("checks") as worker:
        yield worker


def make_table(spark: SparkSession, path: Path, files: int = 4, rows: int = 100) -> str:
    frame = spark.range(rows).selectExpr("id", "id % 7 AS day", "cast(id AS string) AS note")
    frame.repartition(files).write.format("delta").save(str(path))
    return str(path)


def forge(spark: SparkSession, path: str, change: Callable[[DataFrame], DataFrame]) -> None:
    """The next version holds something else, as if a rewrite had gone wrong."""
    frame = change(spark.read.format("delta").load(path))
    frame.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)


def check(engine: DeltaTableEngine, path: str, checks: Checks = Checks()) -> Verification:  # noqa: B008 (frozen)
    facts: TableFacts = engine.reader.facts(TableRef(path))
    return GreatExpectationsVerifier().version_pair(engine.versions, facts, facts.version, checks)


def expectation(name: str, **arguments: Any) -> CheckedExpectation:
    return CheckedExpectation(name, json.dumps(arguments))


def outcomes(verification: Verification) -> list[tuple[str, int | None, str]]:
    return [(assertion.expectation, assertion.version, assertion.outcome) for assertion in verification.assertions]


@pytest.mark.every_run
def test_a_run_proves_its_commit_and_keeps_the_results(
    spark: SparkSession, lease: SessionLease, engine: DeltaTableEngine, lake: Path
) -> None:
    path = make_table(spark, lake / "orders")
    before = spark_rows(spark, path)
    facts = engine.reader.facts(TableRef(path))
    step, _ = compaction(facts)
    checks = Checks(
        content=ContentCheck.EXACT, expectations=(expectation("expect_column_values_to_not_be_null", column="id"),)
    )
    journal = Journal.open(lake / ".maintainer" / "runs", "20261121T220000Z-0000", lambda: NOW_MS)
    outcome = run_fleet(
        plan_all(plan_for(facts, step, checks=checks)),
        DeltaEngine(lease),
        journal=journal,
        verifier=GreatExpectationsVerifier(),
    )

    (table,) = outcome.tables
    assert (table.status, table.problem) == (TableStatus.DONE, None)
    (done,) = table.steps
    assert (done.version_before, done.version_after, done.error, done.note) == (0, 1, None, None)
    asserted = [
        (assertion.expectation, assertion.version)
        for assertion in done.assertions
        if not assertion.expectation.startswith("audit")
    ]
    counted = "expect_column_pair_values_to_be_equal: rows before, by scan = rows after, by scan"
    assert (counted, 1) in asserted
    assert [
        (assertion.expected, assertion.observed) for assertion in done.assertions if assertion.expectation == counted
    ] == [("100", "100")]
    columns = "expect_column_pair_values_to_be_equal: columns planned, for {when} = columns {when}"
    assert (columns.format(when="before"), 1) in asserted
    assert (columns.format(when="after"), 1) in asserted
    assert ("expect_column_values_to_not_be_null", 1) in asserted
    names = [assertion.expectation for assertion in done.assertions]
    assert len(names) == len(set(names))  # no equality is asserted twice
    assert "audit: rows read = rows written" not in names  # proven before the commit: it cannot fail any more
    assert not any("rows read = rows written" in name for name, _ in asserted)
    assert {assertion.outcome for assertion in done.assertions} == {"pass"}
    documents = [json.loads(file.read_text()) for file in (journal.folder.path / "assertions").iterdir()]
    assert len(documents) == 2  # a suite for rows and columns, one for the policy's expectations
    assert all(document["success"] for document in documents)
    assert spark_rows(spark, path) == before
    assert len(engine.reader.facts(TableRef(path)).files) == 1
    cached = spark.read.format("delta").load(path).storageLevel
    # persist=False: later reads see the files and not a cache.
    assert (cached.useMemory, cached.useDisk) == (False, False)


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        (
            lambda df: df.where("id <> 3"),
            "expect_column_pair_values_to_be_equal: rows before, by scan = rows after, by scan",
        ),
        (
            lambda df: df.select("day", "id", "note"),
            "expect_column_pair_values_to_be_equal: columns planned, for before = columns before",
        ),
    ],
    ids=["a row lost", "columns in another order"],
)
def test_a_forged_commit_is_checked_and_wrong(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path, change: Callable[[DataFrame], DataFrame], failing: str
) -> None:
    path = make_table(spark, lake / "t")
    forge(spark, path, change)
    verification = check(engine, path)
    assert verification.verdict is Verdict.FAIL
    assert failing in {name for name, _, outcome in outcomes(verification) if outcome == "fail"}


def test_a_changed_value_is_found_by_comparing_the_rows(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    path = make_table(spark, lake / "t")
    forge(spark, path, lambda df: df.selectExpr("id", "if(id = 3, day + 1, day) AS day", "note"))
    assert check(engine, path).verdict is Verdict.PASS  # counts alone cannot see it
    verification = check(engine, path, Checks(content=ContentCheck.EXACT))
    assert (verification.verdict, verification.content_equal) == (Verdict.FAIL, False)
    assert "rows in one version only" in (verification.detail or "")


def test_a_missing_file_cannot_be_checked_and_a_count_from_the_log_would_not_notice(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    path = make_table(spark, lake / "t")
    forge(spark, path, lambda df: df)
    facts = engine.reader.facts(TableRef(path))
    assert engine.versions.row_count(facts, facts.version, scan=False) == 100
    (lake / "t" / facts.files[0].path).unlink()
    verification = check(engine, path)
    assert verification.verdict is Verdict.ERROR
    assert "error" in {outcome for _, _, outcome in outcomes(verification)}
    by_log = GreatExpectationsVerifier()
    missing = by_log.after_vacuum(engine.versions, facts, _nothing_deleted(), Checks())
    assert missing is not None
    assert (missing.verdict, missing.num_files_checked) == (Verdict.FAIL, len(facts.files))


def _nothing_deleted() -> Any:
    from tests.support.product import VacuumReceipt

    return VacuumReceipt(0, 0)


def test_an_expectation_that_failed_before_as_well_is_reported_and_not_blamed(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    path = make_table(spark, lake / "t")
    forge(spark, path, lambda df: df)
    checks = Checks(
        expectations=(
            expectation("expect_column_values_to_be_between", column="day", min_value=0, max_value=5),
            expectation("expect_column_values_to_not_be_null", column="no_such_column"),
            expectation("expect_column_values_to_be_unique", column="id"),
            expectation("expect_column_values_to_be_unique", column="id"),
        )
    )
    verification = check(engine, path, checks)
    assert verification.verdict is Verdict.PASS
    mine = [(name, outcome) for name, _, outcome in outcomes(verification)][-3:]
    assert mine == [
        ("expect_column_values_to_be_between", "fail"),
        ("expect_column_values_to_not_be_null", "error"),
        ("expect_column_values_to_be_unique", "pass"),
    ]
    assert "expect_column_values_to_be_between failed before as well, at version 0" in (verification.note or "")
    assert "expect_column_values_to_not_be_null could not be checked before as well, at version 0" in (
        verification.note or ""
    )


def test_an_expectation_that_held_before_is_this_commits_fault(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    path = make_table(spark, lake / "t")
    forge(spark, path, lambda df: df.selectExpr("nullif(id, 3) AS id", "day", "note"))
    verification = check(
        engine, path, Checks(expectations=(expectation("expect_column_values_to_not_be_null", column="id"),))
    )
    assert verification.verdict is Verdict.FAIL
    assert (verification.detail or "").startswith("expect_column_values_to_not_be_null at version 1")


def test_verdicts_are_carried_over_commits_that_are_proven_equal(
    spark: SparkSession, lease: SessionLease, engine: DeltaTableEngine, lake: Path
) -> None:
    path = make_table(spark, lake / "t")
    facts = engine.reader.facts(TableRef(path))
    step, batch = compaction(facts)
    (whole,) = batch.bins
    halves = (replace(whole, files=whole.files[:2]), replace(whole, files=whole.files[2:]))
    step = replace(step, batches=tuple(Batch((half,)) for half in halves))
    asked = (
        expectation("expect_column_values_to_not_be_null", column="id"),
        expectation("expect_column_values_to_be_between", column="day", min_value=0, max_value=5),
        # A week has seven days: in no order of a hundred rows is each day later than the one before.
        expectation("expect_column_values_to_be_increasing", column="day", strictly=True),
    )
    journal = Journal.open(lake / ".maintainer" / "runs", "20261121T220000Z-0000", lambda: NOW_MS)
    outcome = run_fleet(
        plan_all(plan_for(facts, step, checks=Checks(expectations=asked))),
        DeltaEngine(lease),
        journal=journal,
        verifier=GreatExpectationsVerifier(),
    )
    (table,) = outcome.tables
    assert (table.status, table.problem) == (TableStatus.DONE, None)
    verdicts = [
        (assertion.outcome, assertion.version, assertion.carried_from)
        for assertion in table.steps[0].assertions
        if assertion.expectation in {each.type for each in asked}
    ]
    assert verdicts[:5] == [
        ("pass", 1, None), ("fail", 1, None), ("fail", 1, None), ("pass", 2, 1), ("fail", 2, 1)]  # fmt: skip
    assert verdicts[5:] == [("fail", 2, None)], "the order of rows may have changed"
    assert "version 0 has the same rows by proof" in (table.steps[0].note or "")
    documents = [json.loads(file.read_text()) for file in (journal.folder.path / "assertions").iterdir()]
    (evidence,) = [document for document in documents if "carried" in document]
    assert evidence["carried_because"] == "versions 1 and 2 hold the same rows by proof"


def test_pairs_are_compared_as_text_and_two_missing_figures_are_not_equal() -> None:
    big = str(2**80)
    verification = gx.validate_pairs((Pair("a", big, "b", big),), "t")
    assert {assertion.outcome for assertion in verification.assertions} == {"pass"}
    assert verification.document["figures"] == {"a": big, "b": big}
    near = gx.validate_pairs((Pair("a", big, "b", str(2**80 + 1)),), "t")
    (wrong,) = [assertion for assertion in near.assertions if assertion.outcome == "fail"]
    assert (wrong.expected, wrong.observed) == (big, str(2**80 + 1))
    assert "fail" in {
        assertion.outcome for assertion in gx.validate_pairs((Pair("a", None, "b", None),), "t").assertions
    }


def test_each_pair_is_asserted_once_by_its_name() -> None:
    pairs = (Pair("a", "1", "b", "1"), Pair("c", "2", "d", "3"), Pair("e", "4", "f", None), Pair("g", None, "h", None))
    validated = gx.validate_pairs(pairs, "t", version=7)
    equal = "expect_column_pair_values_to_be_equal"
    assert [
        (assertion.expectation, assertion.outcome, assertion.expected, assertion.observed)
        for assertion in validated.assertions
    ] == [
        (f"{equal}: a = b", "pass", "1", "1"),
        (f"{equal}: c = d", "fail", "2", "3"),
        (f"{equal}: e = f", "fail", "4", None),
        (f"{equal}: g = h", "fail", None, None),
    ]
    assert {assertion.version for assertion in validated.assertions} == {7}
    figures = {"a": "1", "b": "1", "c": "2", "d": "3", "e": "4", "f": None, "g": None, "h": None}
    assert validated.document["figures"] == figures
    assert len(validated.document["results"]) == 1


@pytest.mark.parametrize(
    "bad",
    [
        expectation("expect_nothing_at_all"),
        expectation("expect_column_values_to_not_be_null", colum="id"),
        expectation("unexpected_rows_expectation", unexpected_rows_query="SELECT 1"),
        expectation("expect_column_values_to_not_be_null", column="id", row_condition="1=1", condition_parser="spark"),
    ],
)
def test_a_bad_expectation_is_refused_before_anything_is_changed(bad: CheckedExpectation) -> None:
    gx.preflight((expectation("expect_column_values_to_not_be_null", column="id"),))
    with pytest.raises(ProjectError) as caught:
        gx.preflight((bad,))
    assert caught.value.code == "P316"


def test_without_great_expectations_nothing_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "great_expectations", None)
    with pytest.raises(EnvironmentUnfit) as caught:
        gx.preflight()
    assert caught.value.code == "E653"


def test_validations_on_many_threads_never_answer_for_one_another(
    spark: SparkSession, engine: DeltaTableEngine, lake: Path
) -> None:
    frames = {rows: spark.range(rows).toDF("id") for rows in (3, 5, 7, 11)}
    wrong: list[str] = []

    def validate(rows: int) -> None:
        for _ in range(2):
            counted = [expectation("expect_table_row_count_to_equal", value=value) for value in (rows, rows + 1)]
            right, not_right = gx.validate_frame(frames[rows], "same name", counted, version=1).assertions
            if (right.outcome, not_right.outcome, not_right.observed) != ("pass", "fail", str(rows)):
                wrong.append(f"{rows}: {right}, {not_right}")

    threads = [threading.Thread(target=validate, args=(rows,)) for rows in frames]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []


def test_a_failing_check_in_a_run_stops_the_vacuum_and_quarantines_the_table(
    spark: SparkSession, lease: SessionLease, engine: DeltaTableEngine, lake: Path
) -> None:
    path = make_table(spark, lake / "t")
    facts = engine.reader.facts(TableRef(path))
    step, _ = compaction(facts)

    class Suspicious(GreatExpectationsVerifier):
        """Believes that one row more was there before, as if it had been lost."""

        def after_rewrite(self, versions: Any, *arguments: Any) -> Verification:
            class OneMore:
                def __getattr__(self, name: str) -> Any:
                    return getattr(versions, name)

                def row_count(self, facts: TableFacts, version: int, **how: Any) -> int:
                    return int(versions.row_count(facts, version, **how)) + (version == 0)

            return super().after_rewrite(cast(Any, OneMore()), *arguments)

    from tests.support.runs.planned_steps import vacuum

    journal = Journal.open(lake / ".maintainer" / "runs", "20261121T220000Z-0000", lambda: NOW_MS)
    plan = plan_for(facts, step, replace(vacuum("x"), files=()))
    outcome: RunOutcome = run_fleet(plan_all(plan), DeltaEngine(lease), journal=journal, verifier=Suspicious())
    (table,) = outcome.tables
    assert table.status is TableStatus.VERIFY_FAILED
    assert [step.status.value for step in table.steps] == ["verify_failed", "skipped"]
    assert table.steps[0].error is not None
    assert "expected" in table.steps[0].error.what
    assert len(engine.reader.facts(TableRef(path)).files) == 1  # the commit stays; the old files stay, too
    assert len(list((lake / "t").glob("*.parquet"))) == 5
