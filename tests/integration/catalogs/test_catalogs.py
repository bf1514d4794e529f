"""Tables by name in Hive's catalog, embedded and as a server, and in a second catalog of the session."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.catalogs.metastore import metastore
from tests.support.tables.delta_tables import age, second_engine_rows

pytestmark = [pytest.mark.spark, pytest.mark.long]

CATALOGS = Path(__file__).parents[2] / "support" / "catalogs"
DEAD_SECONDS = 60.0
NOBODY = "thrift://127.0.0.1:1"


@dataclass(frozen=True)
class HiveLake:
    """A project beside a Hive catalog with a table, its shallow clone, a view and a table of another kind."""

    root: Path
    settings: Mapping[str, str]

    def sql(self, *statements: str) -> list[list[str]]:
        """Run statements as another user."""
        arguments = [json.dumps(dict(self.settings)), *statements]
        done = self.process("-m", "tests.support.catalogs.hive_lake", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        rows: list[list[str]] = json.loads(done.stdout.splitlines()[-1])
        return rows

    def maintainer(self, *arguments: str, more: Mapping[str, str] | None = None) -> tuple[int, str]:
        """Run the program in the project; returns its exit code and everything that it said."""
        settings = {**self.settings, **(more or {})}
        conf = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
        command, *rest = arguments
        done = self.process("-m", "maintainer", "--project", str(self.root), command, *conf, *rest)
        return done.returncode, done.stdout + done.stderr

    def process(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run Python with the arguments."""
        return subprocess.run(
            [sys.executable, *arguments], capture_output=True, text=True, timeout=300, check=False,
            cwd=Path(__file__).parents[3],
        )  # fmt: skip

    def policies(self, **documents: str) -> None:
        """Replace the project's policies."""
        for path in (self.root / "policies").glob("*.yml"):
            path.unlink()
        for name, document in documents.items():
            (self.root / "policies" / f"{name}.yml").write_text(f"version: 1\n{document}", encoding="utf-8")


def lake_of(root: Path, settings: Mapping[str, str]) -> HiveLake:
    (root / "policies").mkdir(parents=True)
    (root / "maintainer.yml").write_text("version: 1\n", encoding="utf-8")
    lake = HiveLake(root, {"spark.sql.catalogImplementation": "hive", **settings})
    values = ", ".join(f"({number}, 'v{number}')" for number in range(20))
    lake.sql(
        f"CREATE DATABASE sales LOCATION '{root}/warehouse/sales'",
        "CREATE TABLE sales.orders (id BIGINT, v STRING) USING delta",
        *(f"INSERT INTO sales.orders VALUES {values}" for _ in range(3)),
        f"CREATE TABLE sales.order_copy SHALLOW CLONE sales.orders VERSION AS OF 3 LOCATION '{root}/elsewhere/copy'",
        f"INSERT OVERWRITE sales.orders VALUES {values}",
        *(f"INSERT INTO sales.orders VALUES ({number}, 'late')" for number in range(100, 104)),
        "CREATE VIEW sales.seen AS SELECT * FROM sales.orders",
        f"CREATE TABLE sales.plain (id INT) USING parquet LOCATION '{root}/plain'",
    )
    for path in (root / "warehouse" / "sales" / "orders", root / "elsewhere" / "copy"):
        age(path, days=30)
    return lake


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> HiveLake:
    root = tmp_path_factory.mktemp("embedded")
    return lake_of(
        root, {"spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={root}/metastore;create=true"}
    )


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveLake]:
    root = tmp_path_factory.mktemp("served")
    with metastore(root / "server") as address:
        yield lake_of(root, {"spark.hadoop.hive.metastore.uris": address})


@pytest.mark.parametrize("kind", ["embedded", "served"])
def test_a_table_of_hive_is_rewritten_and_its_clone_keeps_its_files(kind: str, request: pytest.FixtureRequest) -> None:
    lake: HiveLake = request.getfixturevalue(kind)
    lake.policies(orders="table: sales.orders\noptimize: {}\nvacuum: {retention: 7d, allowLargeDelete: true}\n")
    code, said = lake.maintainer("inventory", "-o", "json")
    assert code == 0, said
    cares = {
        table["table"]: table["care"] for table in json.loads(said[said.index("{") : said.rindex("}") + 1])["tables"]
    }
    assert cares == {"sales.orders": "managed", "sales.order_copy": "unmanaged"}
    path = lake.root / "warehouse" / "sales" / "orders"
    rows, old = second_engine_rows(path), sorted(path.glob("*.parquet"))
    code, said = lake.maintainer("apply", "--yes")
    assert code == 0, said
    assert "a shallow clone" in said or "sales.order_copy" in said, said
    assert second_engine_rows(path) == rows
    log = [json.loads(line) for line in (path / "_delta_log" / "00000000000000000009.json").read_text().splitlines()]
    assert any(action.get("commitInfo", {}).get("operation") == "OPTIMIZE" for action in log)
    # The clone has the rows of version 3, in files that the source removed thirty days ago.
    ((count,),) = lake.sql("SELECT count(*) FROM sales.order_copy")
    assert count == "60"
    assert all(file.exists() for file in old)


def test_names_that_lead_to_no_delta_table_are_told_apart(embedded: HiveLake) -> None:
    embedded.policies(
        a="table: sales.nobody\n", b="table: sales.seen\n", c="table: sales.plain\n", d="table: nowhere.orders\n"
    )
    code, said = embedded.maintainer("plan")
    assert code == 1, said
    assert [said.count(code) for code in (" T401 ", " T402 ")] == [2, 2], said


def test_a_name_and_a_path_of_one_table_are_noticed(embedded: HiveLake) -> None:
    embedded.policies(name="table: sales.orders\noptimize: {}\n", path="table: warehouse/sales/orders\noptimize: {}\n")
    code, said = embedded.maintainer("plan")
    assert code == 1, said
    assert " T409 " in said
    assert "warehouse/sales/orders" in said


def compile_class(source: Path, folder: Path) -> None:
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    subprocess.run(["javac", "-cp", f"{jars}/*", "-d", folder, source], check=True)


def test_a_table_of_a_second_catalog(embedded: HiveLake, tmp_path: Path) -> None:
    compile_class(CATALOGS / "OtherCatalog.java", tmp_path)
    more = {"spark.sql.catalog.other": "OtherCatalog", "spark.driver.extraClassPath": str(tmp_path)}
    embedded.policies(orders="table: other.sales.orders\noptimize: {}\n", gone="table: other.sales.gone\n")
    code, said = embedded.maintainer("plan", "-o", "json", more=more)
    assert code == 1, said
    plan = json.loads(said[said.index("{") : said.rindex("}") + 1])
    tables = {table["ref"]["identifier"]: table for table in plan["tables"]}
    assert tables["other.sales.orders"]["observed"]["location"].endswith("/warehouse/sales/orders")
    assert tables["other.sales.gone"]["problem"]["code"] == "T401"


def test_unitys_class_says_what_it_manages_and_is_not_listed(embedded: HiveLake, tmp_path: Path) -> None:
    package, name = "io.unitycatalog.spark", "UCSingleCatalog"
    text = (CATALOGS / "OtherCatalog.java").read_text(encoding="utf-8").replace("OtherCatalog", name)
    (tmp_path / f"{name}.java").write_text(f"package {package};\n{text}", encoding="utf-8")
    compile_class(tmp_path / f"{name}.java", tmp_path)
    prod = "spark.sql.catalog.prod"
    more = {prod: f"{package}.{name}", f"{prod}.uri": "https://unity.invalid", f"{prod}.auth.type": "oauth"}
    more["spark.driver.extraClassPath"] = str(tmp_path)
    rule = "match: {tables: ['prod.sales.*']}\nmanage: true\noptimize: {}\n"
    embedded.policies(own="table: prod.sales.orders\n", copy="table: prod.sales.order_copy\noptimize: {}\n", rule=rule)
    settings = embedded.root / "maintainer.yml"
    settings.write_text("version: 1\ndatabases: [prod.sales]\n", encoding="utf-8")
    try:
        code, said = embedded.maintainer("plan", "-o", "json", more=more)
    finally:
        settings.write_text("version: 1\n", encoding="utf-8")
    assert code == 1, said
    plan = json.loads(said[said.index("{") : said.rindex("}") + 1])
    tables = {table["ref"]["identifier"]: table for table in plan["tables"]}
    problems = {name: table["problem"]["code"] for name, table in tables.items() if table["problem"] is not None}
    assert problems == {"prod.sales.orders": "T407", "catalog": "E620"}, said
    assert tables["prod.sales.order_copy"]["observed"] is not None


def test_a_catalog_that_does_not_answer_is_said_to_be_that(embedded: HiveLake) -> None:
    embedded.policies(orders="table: sales.orders\noptimize: {}\n", other="table: sales.other\noptimize: {}\n")
    started = time.monotonic()
    code, said = embedded.maintainer("plan", more={"spark.hadoop.hive.metastore.uris": NOBODY})
    assert code == 2, said
    assert said.count("the catalog does not answer") == said.count("E647") == 1, said
    assert "--> sales.orders and 1 more table" in said
    assert "T403" not in said
    assert time.monotonic() - started < DEAD_SECONDS


def test_without_a_catalog_a_name_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "maintainer.yml").write_text("version: 1\n", encoding="utf-8")
    lake = HiveLake(tmp_path, {})
    lake.policies(orders="table: sales.orders\n")
    code, said = lake.maintainer("plan")
    assert code == 1, said
    assert "there is no such table: this is a name in a catalog, and no catalog is set up" in said
