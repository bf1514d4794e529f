"""Two policies that reach one table (T409), through every command that plans or applies: neither is touched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from maintainer import Project
from tests.integration.vacuum.test_vacuum_whole import aged, command, compacted
from tests.support.product import run
from tests.support.tables.aged_tables import tree
from tests.support.tables.bind_mounts import BindMount, bind_mounts
from tests.support.tables.delta_tables import files_on_disk

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.sampled(3)]

NAME = "default.kept_by_another"
DELETES = "vacuum: {retention: 7d, allowLargeDelete: rewritten}\n"
KEEPS = "vacuum: {retention: 90d}\n"


@pytest.fixture(scope="module")
def mount() -> Iterator[BindMount]:
    with bind_mounts() as mount:
        yield mount


class Case:
    """A project with a table whose old files one policy deletes, and the way to a second policy that keeps them."""

    def __init__(self, spark: SparkSession, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.spark, self.root, self.capsys = spark, root / "project", capsys
        (self.root / "policies").mkdir(parents=True)
        (self.root / "maintainer.yml").write_text("version: 1\n", encoding="utf-8")
        self.table = self.root / "lake" / "a t"
        self.old = compacted(spark, self.table)
        aged(spark, self.table)
        self.policy("first", "lake/a t", DELETES)
        self.before = tree(self.root / "lake")

    def policy(self, file: str, written: str, text: str) -> None:
        path = self.root / "policies" / f"{file}.yaml"
        path.write_text(f'version: 1\ntable: "{written}"\n{text}', encoding="utf-8")

    def second(self, spelling: str, mount: BindMount) -> None:
        """Write the second policy."""
        aside = self.root.parent
        if spelling == "link":
            (aside / "link").symlink_to(self.table)
        elif spelling in ("link above", "link above and dots"):
            (aside / "above").symlink_to(self.root)
        elif spelling == "mount":
            mount(self.table, aside / "mounted")
        elif spelling == "mount above":
            mount(self.root / "lake", aside / "mounted")
        elif spelling == "name":
            self.spark.sql(f"CREATE TABLE {NAME} USING delta LOCATION '{self.table}'")
        written = {
            "link": f"{aside}/link",
            "link above": f"file://{aside}/above/lake/a t/",
            "link above and dots": f"{aside}/above/./lake/../lake/a t",
            "mount": f"file:{aside}/mounted",
            "mount above": f"{aside}/mounted/a t",
            "name": NAME,
        }[spelling]
        self.policy("second", written, KEEPS)

    def run(self, *args: str) -> str:
        """A command that must leave the table alone and say why."""
        code, out = command(self.root, self.capsys, *args)
        assert code != 0, out
        assert "T409" in out, out
        assert tree(self.root / "lake") == self.before
        return out


@pytest.fixture
def case(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Case]:
    yield Case(spark, tmp_path, capsys)
    spark.sql(f"DROP TABLE IF EXISTS {NAME}")


def by_selecting_either(case: Case) -> None:
    case.run("apply", "--yes", "-s", "path:policies/first.yaml")
    case.run("apply", "--yes", "-s", "path:policies/second.yaml")
    case.run("apply", "--yes")


def by_shards(case: Case) -> None:
    for total in (1, 2, 3):
        for number in range(1, total + 1):
            command(case.root, case.capsys, "apply", "--yes", "--shard", f"{number}/{total}")
            assert tree(case.root / "lake") == case.before
    case.run("apply", "--yes", "--shard", "1/1")


def by_watching(case: Case) -> None:
    code = run(["--project", str(case.root), "watch", "--yes", "--until-idle"])
    assert code != 0
    assert "warning[T409]" in case.capsys.readouterr().err
    assert tree(case.root / "lake") == case.before


def by_python(case: Case) -> None:
    project = Project.load(case.root)
    problems = {table.problem.code for table in project.plan(case.spark).tables if table.problem is not None}
    assert problems == {"T409"}
    result = project.apply(case.spark, select=["path:policies/first.yaml"])
    assert [table.problem and table.problem.code for table in result.outcome.tables] == ["T409"]
    assert tree(case.root / "lake") == case.before


def by_a_saved_plan(case: Case) -> None:
    plan = str(case.root.parent / "plan.json")
    command(case.root, case.capsys, "plan", "--out", plan)
    case.run("apply", "--yes", plan)


def by_retrying(case: Case) -> None:
    case.run("apply", "--yes")
    case.run("retry", "--yes")


WAYS: dict[Callable[[Case], None], str] = {
    by_selecting_either: "mount",
    by_shards: "link above",
    by_watching: "link",
    by_python: "mount above",
    by_a_saved_plan: "link above and dots",
    by_retrying: "mount above",
}


@pytest.mark.parametrize(("way", "spelling"), WAYS.items(), ids=lambda value: getattr(value, "__name__", value))
def test_neither_is_touched(case: Case, mount: BindMount, way: Callable[[Case], None], spelling: str) -> None:
    case.second(spelling, mount)
    way(case)
    assert case.old <= files_on_disk(case.table)


@pytest.mark.parametrize("way", [by_shards, by_watching, by_python, by_a_saved_plan, by_retrying])
def test_nor_beside_a_catalogs_name(case: Case, mount: BindMount, way: Callable[[Case], None]) -> None:
    case.second("name", mount)
    way(case)
    assert case.old <= files_on_disk(case.table)


@pytest.mark.parametrize("spelling", ["link", "link above and dots", "mount", "name"])
def test_a_policy_that_came_after_a_plan_was_saved_stops_it(case: Case, mount: BindMount, spelling: str) -> None:
    plan = str(case.root.parent / "plan.json")
    code, out = command(case.root, case.capsys, "plan", "--out", plan)
    assert (code, "3 files" in out) == (0, True), out
    case.second(spelling, mount)
    case.run("apply", "--yes", plan)


def test_what_went_into_the_trash_comes_back_by_the_other_policy_and_is_proven(case: Case, mount: BindMount) -> None:
    case.policy("first", "lake/a t", "vacuum: {retention: 7d, allowLargeDelete: rewritten, trash: 7d}\n")
    code, out = command(case.root, case.capsys, "apply", "--yes")
    assert code == 0, out
    assert not case.old & files_on_disk(case.table)
    (run_folder,) = (case.root / ".maintainer" / "runs").iterdir()
    case.second("mount above", mount)
    other = f"{case.root.parent}/mounted/a t"
    # Neither deletes nor rewrites: these are what one looks and repairs with.
    assert command(case.root, case.capsys, "undelete", "--yes", other, "--run", run_folder.name)[0] == 0
    assert case.old <= files_on_disk(case.table)
    code, out = command(case.root, case.capsys, "verify", f"{other}@1")
    assert code == 0, out
    code, out = command(case.root, case.capsys, "apply", "--yes")
    assert "T409" in out, out
    assert case.old <= files_on_disk(case.table)
