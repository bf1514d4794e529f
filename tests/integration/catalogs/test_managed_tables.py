"""A rule that manages what it matches, on a real catalog and on folders: found, planned, applied, new and gone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.support.policies.projects import git, write_project
from tests.support.product import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]

RULE = "version: 1\nmatch: {tables: ['lake/*', 'stock.*'], exclude: ['*_tmp']}\nmanage: true\nowner: team-lake\n"


def make_table(place: Path, num_files: int = 3) -> None:
    for number in range(num_files):
        write_deltalake(str(place), pa.table({"id": [number, number + 1]}), mode="append")


def num_files(place: Path) -> int:
    return len(DeltaTable(str(place)).file_uris())


def rows(place: Path) -> int:
    return int(DeltaTable(str(place)).to_pyarrow_table().num_rows)


def recorded(ledger: Path) -> list[tuple[str, str, int]]:
    """The rewrites that the ledger has, as the second engine reads them."""
    table = DeltaTable(str(ledger)).to_pyarrow_table().to_pylist()
    return sorted((row["table"], row["kind"], row["version_after"]) for row in table)


def test_tables_of_a_catalog_and_of_folders_are_managed_by_one_rule(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = tmp_path / "lake"
    for name in ("a", "b", "people", "named", "x_tmp"):
        make_table(lake / name)
    (tmp_path / "policies").mkdir()
    (tmp_path / "maintainer.yml").write_text("version: 1\nroots: [lake]\ndatabases: [stock]\n", encoding="utf-8")
    (tmp_path / "policies" / "rule.yml").write_text(RULE, encoding="utf-8")
    # A file names a table of a database that is not declared; it lies below the root.
    (tmp_path / "policies" / "people.yml").write_text("version: 1\ntable: hr.people\n", encoding="utf-8")

    def said(*arguments: str, code: int = 0) -> str:
        capsys.readouterr()
        assert run(["-q", "--project", str(tmp_path), *arguments]) == code
        return capsys.readouterr().out

    for database, name in (("stock", "named"), ("hr", "people")):
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
        spark.sql(f"CREATE TABLE {database}.{name} USING delta LOCATION '{lake / name}'")
    try:
        document: dict[str, Any] = json.loads(said("list", "-o", "json"))
        assert {table["table"]: (table["file"], table["rule_line"]) for table in document["tables"]} == {
            "hr.people": ("policies/people.yml", None),
            "lake/a": ("policies/rule.yml", 2),
            "lake/b": ("policies/rule.yml", 2),
            "stock.named": ("policies/rule.yml", 2),
        }
        said("apply", "--yes")
        assert {name: num_files(lake / name) for name in ("a", "b", "people", "named", "x_tmp")} == {
            "a": 1, "b": 1, "people": 1, "named": 1, "x_tmp": 3,
        }  # fmt: skip
        assert {rows(lake / name) for name in ("a", "b", "people", "named", "x_tmp")} == {6}

        verified = json.loads(said("verify", "-s", "lake/a stock.named", "-o", "json"))
        assert [(table["ref"]["identifier"], table["result"]) for table in verified["tables"]] == [
            ("lake/a", "proven"), ("stock.named", "proven"),
        ]  # fmt: skip
        ledger = tmp_path / ".maintainer" / "ledger"
        written = recorded(ledger)
        assert {name for name, _, _ in written} == {"hr.people", "lake/a", "lake/b", "stock.named"}
        shutil.rmtree(ledger)
        said("ledger", "rebuild")
        assert recorded(ledger) == written

        make_table(lake / "fresh")
        shutil.rmtree(lake / "b")
        plan = json.loads(said("plan", "-o", "json"))
        assert [table["ref"]["identifier"] for table in plan["tables"] if table["is_new"]] == ["lake/fresh"]
        assert [table["ref"]["identifier"] for table in plan["gone"]] == ["lake/b"]
        inventory = json.loads(said("inventory", "-o", "json"))
        cares = {table["table"]: table["care"] for table in inventory["tables"]}
        assert {cares.pop(name) for name in ("lake/a", "lake/fresh", "stock.named", "hr.people")} == {"managed"}
        assert cares == {"lake/x_tmp": "unmanaged"}
        assert "rule.yml:2" in said("why", "lake/fresh")
    finally:
        for database in ("stock", "hr"):
            spark.sql(f"DROP DATABASE {database} CASCADE")


@pytest.mark.usefixtures("spark")
def test_a_place_that_was_away_is_seen_by_every_selection_and_retried_as_a_whole(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = "version: 1\nroots: [lake, mount]\n"
    rule = "match: {tables: ['*']}\nmanage: true\ntags: [nightly]\noptimize: {when: {minSmallFiles: 2}}\n"
    write_project(tmp_path, {"maintainer.yml": settings, "policies/rule.yml": rule})
    make_table(tmp_path / "lake" / "a")

    def said(*arguments: str, code: int) -> str:
        capsys.readouterr()
        assert run(["--project", str(tmp_path), *arguments]) == code
        shown = capsys.readouterr()
        return shown.out + shown.err

    assert "E645" in said("apply", "--yes", "-s", "tag:nightly", code=1)
    assert num_files(tmp_path / "lake" / "a") == 1
    assert "E645" in said("retry", "--yes", code=1)
    make_table(tmp_path / "mount" / "b")
    make_table(tmp_path / "mount" / "c")
    make_table(tmp_path / "lake" / "late")
    assert "all tables of ./mount, which run " in said("retry", "--yes", code=0)
    assert [num_files(tmp_path / name) for name in ("mount/b", "mount/c", "lake/late")] == [1, 1, 3]
    assert [rows(tmp_path / name) for name in ("lake/a", "mount/b", "mount/c")] == [6, 6, 6]
    assert "Nothing is left" in said("retry", "--yes", code=0)


def test_a_changed_rule_is_compared_for_each_table_that_it_manages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rule = "match: {tables: ['lake/*'], exclude: ['*_tmp']}\nmanage: true\nvacuum: {retention: 14d}\n"
    for name in ("a", "b", "x_tmp"):
        make_table(tmp_path / "lake" / name)
    files = {"maintainer.yml": "roots: [lake]\n", ".gitignore": "lake/\n.maintainer/\n", "policies/rule.yml": rule}
    write_project(tmp_path, files)
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "base")
    changed = rule.replace("14d", "8d").replace("['*_tmp']", "['*_tmp', 'lake/b']")
    write_project(tmp_path, {"policies/rule.yml": changed})
    assert run(["--project", str(tmp_path), "plan", "-o", "markdown", "--compare", "main"]) == 0
    comment = capsys.readouterr().out.splitlines()
    assert "| `lake/a` | `vacuum.retention` | `14d` | `8d` |" in comment, comment
    (no_longer,) = [line for line in comment if line.startswith("| `lake/b` | `policies/rule.yml`")]
    assert "compaction" in no_longer
    assert not any("x_tmp" in line for line in comment)
