"""Writers come first: somebody else appends, merges and deletes all the while, beside one `apply` after another."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from tests.support.policies.projects import write_project
from tests.support.product import (
    CommandEngine,
    DeltaEngine,
    DeltaJvm,
    Plan,
    PlanRequest,
    Project,
    RunOutcome,
    RunSpec,
    SessionLease,
    TableRef,
    TableStatus,
    apply_plan,
    classic_sessions,
    make_plan,
    open_journal,
)
from tests.support.runs.app_runs import commit_info, newest_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

TODAY = "2026-11-22"
PLAIN = (
    "INSERT INTO {t} VALUES ({n}, 'appended')",
    "MERGE INTO {t} t USING (SELECT {n}L - 900 AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'merged'",
    "DELETE FROM {t} WHERE id = {n} - 900",
)
APPENDS = ("INSERT INTO {t} VALUES ({n}, 'appended')",)
OF_TODAY = (
    f"INSERT INTO {{t}} VALUES ({{n}}, 'appended', DATE'{TODAY}')",
    f"MERGE INTO {{t}} t USING (SELECT {{n}}L - 900 AS id) s ON t.id = s.id AND t.day = '{TODAY}' "
    f"WHEN MATCHED THEN UPDATE SET v = 'merged'",
    f"DELETE FROM {{t}} WHERE id = {{n}} - 900 AND day = DATE'{TODAY}'",
)


@dataclass
class Writer:
    """Somebody with a session of his own, who repeats his statements in turn and keeps what failed."""

    spark: SparkSession
    path: Path
    statements: tuple[str, ...]
    num_operations: int
    failures: list[str] = field(default_factory=list)

    def __enter__(self) -> Writer:
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(600)
        assert not self._thread.is_alive()

    @property
    def working(self) -> bool:
        return self._thread.is_alive()

    def _work(self) -> None:
        session = self.spark.newSession()
        for number in range(self.num_operations):
            text = self.statements[number % len(self.statements)]
            try:
                session.sql(text.format(t=f"delta.`{self.path}`", n=1000 + number))
            except Exception as error:
                self.failures.append(f"{text[:6]}: {str(error)[:200]}")


def rounds(lease: SessionLease, writer: Writer, root: Path, policy: str = "") -> list[tuple[Plan, RunOutcome]]:
    """Plan and apply a policy of two lines again and again, as long as the writer works."""
    files = {"maintainer.yml": "", "policies/t.yml": f"table: {writer.path}\n{policy}"}
    engine, ran = DeltaEngine(lease), []
    project = Project.load(write_project(root, files))
    with writer:
        while writer.working:
            plan = make_plan(project, engine, PlanRequest(project.policies, int(time.time() * 1000), jobs=1))
            with open_journal(project) as journal:
                ran.append((plan, apply_plan(project, engine, plan, journal, None, RunSpec())))
            time.sleep(1)
    return ran


def apply_once(lease: SessionLease, root: Path, path: Path, policy: str = "") -> RunOutcome:
    """Plan and apply a policy of two lines, once."""
    files = {"maintainer.yml": "", "policies/t.yml": f"table: {path}\n{policy}"}
    project = Project.load(write_project(root, files))
    engine = DeltaEngine(lease)
    plan = make_plan(project, engine, PlanRequest(project.policies, int(time.time() * 1000), jobs=1))
    with open_journal(project) as journal:
        return apply_plan(project, engine, plan, journal, None, RunSpec())


def ours(path: Path) -> list[dict[str, object]]:
    """What our commits say of themselves."""
    infos = [commit_info(path, version) for version in range(newest_version(path) + 1)]
    return [row for row in infos if "maintainer" in str(row.get("userMetadata"))]


def fill(spark: SparkSession, path: Path, *days: str) -> None:
    """Ten small files, or as many a day."""
    for day in days or (None,):
        columns = ["id", "'old' v", *([f"DATE'{day}' day"] if day else [])]
        writer = spark.range(100, 200).selectExpr(*columns).repartition(10).write.format("delta").mode("append")
        (writer.partitionBy("day") if day else writer).save(str(path))


@pytest.mark.long
@pytest.mark.timeout(900)
def test_writers_of_a_hot_table_lose_at_most_once(
    spark: SparkSession, lease: SessionLease, tmp_path: Path, lake: Path
) -> None:
    path = lake / "t"
    fill(spark, path)
    writer = Writer(spark, path, PLAIN, 30)
    ran = rounds(lease, writer, tmp_path)
    assert len(ran) >= 5
    assert len(writer.failures) <= 1, writer.failures
    plan, last = ran[-1]
    assert last.tables[0].status is TableStatus.WAITING
    assert plan.tables[0].left_alone[0].reason.text.startswith("hot: ")


@pytest.mark.long
def test_a_table_that_is_only_appended_to_is_compacted_meanwhile(
    spark: SparkSession, lease: SessionLease, tmp_path: Path, lake: Path
) -> None:
    path = lake / "t"
    fill(spark, path)
    writer = Writer(spark, path, APPENDS, 8)
    ran = rounds(lease, writer, tmp_path)
    assert writer.failures == []
    assert {outcome.tables[0].status for _, outcome in ran} <= {TableStatus.DONE, TableStatus.UP_TO_DATE}
    assert ours(path)


@pytest.mark.long
def test_updates_of_today_keep_no_other_day_from_being_compacted(
    spark: SparkSession, lease: SessionLease, tmp_path: Path, lake: Path
) -> None:
    path = lake / "t"
    fill(spark, path, "2026-11-20", "2026-11-21", TODAY)
    today = f"DATE'{TODAY}'"
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 100 AND day = {today}")
    writer = Writer(spark, path, OF_TODAY, 6)
    rounds(lease, writer, tmp_path)
    assert writer.failures == []
    counts = spark.read.format("delta").load(str(path)).selectExpr("day", "input_file_name() f").distinct()
    files = {str(row.day): row["count"] for row in counts.groupBy("day").count().collect()}
    assert files["2026-11-20"] == files["2026-11-21"] == 1
    assert files[TODAY] > 1
    assert len(ours(path)) == 1


def test_an_update_between_two_tries_of_a_commit_holds_the_second_one_back(
    spark: SparkSession, lease: SessionLease, tmp_path: Path, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = lake / "t"
    fill(spark, path)
    real = DeltaJvm.commit
    tried: list[int] = []

    def beside(self: DeltaJvm, *args: Any) -> int:
        if not tried and str(path) in str(args[0].deltaLog().dataPath()):
            tried.append(1)
            # The properties make Delta refuse our first try. The UPDATE takes no file of ours: only a look finds it.
            spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('team' = 'x')")
            spark.sql(f"INSERT INTO delta.`{path}` VALUES (999, 'new')")
            spark.sql(f"UPDATE delta.`{path}` SET v = 'newer' WHERE id = 999")
        return real(self, *args)

    monkeypatch.setattr(DeltaJvm, "commit", beside)
    outcome = apply_once(lease, tmp_path, path)
    assert tried == [1]
    (step,) = outcome.tables[0].steps
    assert step.error is not None
    assert (outcome.tables[0].status, step.error.code) == (TableStatus.YIELDED, "C718"), step
    assert "hot: UPDATE by another writer" in step.error.what
    assert ours(path) == []
    assert len(DeltaTable(str(path)).file_uris()) == 11
    assert len(list(path.glob("*.parquet"))) == 12, "the UPDATE replaced one; nothing of ours is left"


@pytest.mark.long
def test_both_engines_know_which_days_each_statement_read(spark: SparkSession, lease: SessionLease, lake: Path) -> None:
    path = lake / "t"
    fill(spark, path, "2026-11-20", "2026-11-21", TODAY)
    table = f"delta.`{path}`"
    one_day, two_days, every_day = {TODAY}, {"2026-11-21", TODAY}, None
    statements: list[tuple[str, set[str] | None]] = [
        (f"DELETE FROM {table} WHERE day = '{TODAY}' AND id = 100", one_day),
        (f"UPDATE {table} SET v = 'x' WHERE day >= DATE'2026-11-21' AND id = 101", two_days),
        (f"DELETE FROM {table} WHERE day IN ('2026-11-21', '{TODAY}') AND id = 102", two_days),
        (OF_TODAY[1].format(t=table, n=1003), one_day),
        (f"MERGE INTO {table} t USING (SELECT 104L id, DATE'{TODAY}' day) s ON t.id = s.id AND t.day = s.day "
         "WHEN MATCHED THEN UPDATE SET v = 'y'", every_day),
        (f"UPDATE {table} SET v = 'z' WHERE id = 105", every_day),
        (f"INSERT INTO {table} REPLACE WHERE day = '{TODAY}' SELECT 1L, 'w', DATE'{TODAY}'", one_day),
        (f"OPTIMIZE {table} WHERE day = '2026-11-20'", {"2026-11-20"}),
        (f"INSERT INTO {table} VALUES (1, 'v', DATE'{TODAY}')", set()),
    ]  # fmt: skip
    for text, _ in statements:
        spark.sql(text)
    expected = [days for _, days in reversed(statements) if days != set()]
    for engine in (DeltaEngine(lease), CommandEngine(classic_sessions(lease))):
        with engine.worker("updates") as worker:
            facts = worker.reader.facts(TableRef(str(path)))
            updates = worker.reader.updates(facts, since_ms=0, after_version=-1)
        days_read = [None if u.partitions is None else {str(dict(v)["day"]) for v in u.partitions} for u in updates]
        assert days_read == expected, engine
