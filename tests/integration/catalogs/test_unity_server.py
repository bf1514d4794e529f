"""Tables by name from a real server of Unity Catalog: planned without a JVM, maintained, listed, and left alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.support.stores.store_servers import uc_server
from tests.support.tables.delta_tables import second_engine_rows

# The server is built first where it is not there yet, which takes longer than a test may (and has its own limit).
pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(300, func_only=True)]

DEAD_SECONDS = 20.0
TOKEN = "not-looked-at-and-not-told"


@dataclass(frozen=True)
class UnityLake:
    """A project beside a server that has two external tables, a managed one, and one of another format."""

    root: Path
    address: str

    def post(self, what: str, **document: Any) -> dict[str, Any]:
        """Make something in the catalog."""
        request = urllib.request.Request(
            f"{self.address}/api/2.1/unity-catalog/{what}", json.dumps(document).encode(),
            {"Content-Type": "application/json"}, method="POST",
        )  # fmt: skip
        with urllib.request.urlopen(request, timeout=30) as answer:
            made: dict[str, Any] = json.load(answer)
        return made

    def maintainer(self, *arguments: str, java: bool = False, address: str | None = None) -> tuple[int, str, str]:
        """Run the program in the project, without a JVM that could start unless a test wants one."""
        settings = {
            "spark.sql.catalog.prod": "io.unitycatalog.spark.UCSingleCatalog",
            "spark.sql.catalog.prod.uri": address or self.address,
            "spark.sql.catalog.prod.token": TOKEN,
        }
        conf = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
        environ: Mapping[str, str] = os.environ if java else {**os.environ, "JAVA_HOME": str(self.root / "no-java")}
        command, *rest = arguments
        done = subprocess.run(
            [sys.executable, "-m", "maintainer", "--project", str(self.root), command, *conf, *rest],
            capture_output=True, text=True, timeout=300, check=False, env=environ, cwd=Path(__file__).parents[3],
        )  # fmt: skip
        assert TOKEN not in done.stdout + done.stderr
        return done.returncode, done.stdout, done.stdout + done.stderr

    def project(self, settings: str = "", **documents: str) -> None:
        """Replace the project's files."""
        (self.root / "policies").mkdir(exist_ok=True)
        (self.root / "maintainer.yml").write_text(f"version: 1\n{settings}", encoding="utf-8")
        for path in (self.root / "policies").glob("*.yml"):
            path.unlink()
        for name, document in documents.items():
            (self.root / "policies" / f"{name}.yml").write_text(f"version: 1\n{document}", encoding="utf-8")


def make_table(place: Path, num_files: int = 4) -> None:
    for number in range(num_files):
        write_deltalake(str(place), pa.table({"id": [number, number + 1]}), mode="append")


def make_managed_table(lake: UnityLake) -> None:
    """Make one as Delta's own client does: reserve it, write its first commit, and register it."""
    columns = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}
    staged = lake.post("delta/v1/catalogs/prod/schemas/sales/staging-tables", name="own")
    features = staged["required-protocol"]["writer-features"]
    assert "catalogManaged" in features
    properties = {key: value for key, value in staged["required-properties"].items() if value is not None}
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": staged["required-protocol"]["reader-features"],
        "writerFeatures": features,
    }
    metadata = {
        "id": staged["table-id"],
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(columns),
        "partitionColumns": [],
        "configuration": properties,
        "createdTime": 1,
    }
    log = Path(staged["location"].removeprefix("file://")) / "_delta_log"
    log.mkdir(parents=True)
    info = {"commitInfo": {"timestamp": 1, "inCommitTimestamp": 1, "operation": "CREATE TABLE"}}
    actions = (info, {"protocol": protocol}, {"metaData": metadata})
    (log / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)), encoding="utf-8")
    lake.post(
        "delta/v1/catalogs/prod/schemas/sales/tables",
        **{
            "name": "own", "location": staged["location"], "table-type": "MANAGED", "columns": columns,
            "partition-columns": [], "properties": properties, "last-commit-timestamp-ms": 1,
            "protocol": {
                "min-reader-version": 3, "min-writer-version": 7,
                "reader-features": protocol["readerFeatures"], "writer-features": features,
            },
        },
    )  # fmt: skip


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UnityLake]:
    root = tmp_path_factory.mktemp("unity")
    with uc_server(root / "lake") as address:
        lake = UnityLake(root, address)
        lake.post("catalogs", name="prod")
        lake.post("schemas", name="sales", catalog_name="prod")
        key = {"directory_id": "d", "application_id": "a", "client_secret": "s"}
        lake.post("credentials", name="none", purpose="STORAGE", azure_service_principal=key)
        lake.post("external-locations", name="lake", url=f"file://{root}/lake/tables", credential_name="none")
        for name, kind in (("orders", "DELTA"), ("returns", "DELTA"), ("plain", "PARQUET")):
            place = root / "lake" / "tables" / name
            make_table(place)
            lake.post(
                "tables", name=name, catalog_name="prod", schema_name="sales", table_type="EXTERNAL",
                data_source_format=kind, storage_location=f"file://{place}",
            )  # fmt: skip
        make_managed_table(lake)
        yield lake


def tables_of(document: str) -> dict[str, dict[str, Any]]:
    return {table["ref"]["identifier"]: table for table in json.loads(document)["tables"]}


def test_names_are_planned_without_a_jvm_and_told_apart(lake: UnityLake) -> None:
    lake.project(**{
        name: f"table: prod.{table}\noptimize: {{}}\n"
        for name, table in (
            ("orders", "sales.orders"), ("own", "sales.own"), ("plain", "sales.plain"), ("gone", "sales.gone"),
            ("nowhere", "nothing.orders"),
        )
    })  # fmt: skip
    code, document, said = lake.maintainer("plan", "-o", "json")
    assert code == 1, said
    tables = tables_of(document)
    orders = tables.pop("prod.sales.orders")
    assert orders["observed"]["location"] == f"file:{lake.root}/lake/tables/orders"
    assert [step["kind"] for step in orders["steps"]] == ["compact"]
    assert {name: table["problem"]["code"] for name, table in tables.items()} == {
        "prod.sales.own": "T407", "prod.sales.plain": "T402", "prod.sales.gone": "T401", "prod.nothing.orders": "T401",
    }  # fmt: skip


def test_a_schema_is_listed_and_a_rule_manages_it(lake: UnityLake) -> None:
    rule = "match: {tables: ['prod.sales.*'], exclude: ['*.orders']}\nmanage: true\nowner: team-lake\noptimize: {}\n"
    lake.project("databases: [prod.sales]\n", rule=rule)
    code, document, said = lake.maintainer("inventory", "-o", "json")
    assert code == 0, said
    assert {table["table"]: table["care"] for table in json.loads(document)["tables"]} == {
        "prod.sales.orders": "unmanaged", "prod.sales.own": "managed", "prod.sales.returns": "managed",
    }  # fmt: skip
    code, document, said = lake.maintainer("plan", "-o", "json")
    assert code == 0, said  # a table that its catalog maintains is named, and is no error of a rule
    tables = tables_of(document)
    assert tables.keys() == {"prod.sales.own", "prod.sales.returns"}
    assert tables["prod.sales.own"]["problem"]["code"] == "T407"


def test_an_external_table_is_maintained_by_its_name(lake: UnityLake) -> None:
    lake.project(orders="table: prod.sales.orders\noptimize: {}\nvacuum: {retention: 7d}\n")
    place = lake.root / "lake" / "tables" / "orders"
    rows = second_engine_rows(place)
    code, _, said = lake.maintainer("apply", "--yes", java=True)
    assert code == 0, said
    assert second_engine_rows(place) == rows
    actions = [json.loads(line) for line in (place / "_delta_log" / f"{4:020}.json").read_text().splitlines()]
    assert any(action.get("commitInfo", {}).get("operation") == "OPTIMIZE" for action in actions)
    kept = [path for path in (lake.root / ".maintainer").rglob("*") if path.is_file()]
    assert kept
    assert not [path for path in kept if TOKEN.encode() in path.read_bytes()]
    code, document, said = lake.maintainer("plan", "-o", "json")
    assert (code, tables_of(document)["prod.sales.orders"]["steps"]) == (0, []), said


def test_a_server_that_is_away_is_said_once(lake: UnityLake) -> None:
    lake.project(**{name: f"table: prod.sales.{name}\noptimize: {{}}\n" for name in ("a", "b", "c")})
    started = time.monotonic()
    code, _, said = lake.maintainer("plan", address="http://127.0.0.1:1")
    assert code == 2, said
    assert said.count("the catalog does not answer") == said.count("E647") == 1, said
    assert "--> prod.sales.a and 2 more tables" in said
    assert time.monotonic() - started < DEAD_SECONDS
