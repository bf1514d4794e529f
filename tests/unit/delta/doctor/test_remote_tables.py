"""What doctor says of tables on other storage, without a session: what it asks for, and in which words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from maintainer.delta.doctor import doctor_storage
from maintainer.delta.doctor.doctor_model import Status
from maintainer.delta.doctor.doctor_storage import check_remote_tables
from maintainer.errors import (
    CatalogAway,
    MaintainerError,
    NotDelta,
    StoreRefusal,
    StoreSilent,
    TableError,
)


class EmptySession:
    """A session that has no table."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.statements: list[str] = []

    def sql(self, statement: str) -> object:
        self.statements.append(statement)
        raise self.error


@dataclass
class Away:
    """A sign of life that did not come."""

    why: MaintainerError
    is_known: bool = True

    def error(self, others_wait: object = None) -> MaintainerError:
        return self.why


@pytest.fixture(autouse=True)
def _catalog_of_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session without a JVM answers for its catalog, too."""
    monkeypatch.setattr(doctor_storage, "DeltaJvm", lambda spark: spark)
    monkeypatch.setattr(doctor_storage, "entry_of", lambda spark, name: spark.sql(name))


NO_TABLE = NotDelta("this is not a Delta table", help="correct `table:`")
AWAY = StoreSilent("the object store does not answer", help="look at the endpoint")


def test_a_store_that_is_away_is_said_once_and_its_tables_are_not_asked_for() -> None:
    spark: Any = EmptySession(NO_TABLE)
    tables = [f"s3://gone/t{number:02}" for number in range(20)]
    away = dict.fromkeys(tables, Away(StoreSilent("away", found="http://h:1: Connection refused")))
    checks = list(check_remote_tables(spark, tables, away, None))
    assert [(check.name, check.status, check.code) for check in checks] == [("store", Status.FAIL, "T435")]
    assert "s3://gone/t00 and 19 more tables; found: http://h:1: Connection refused" in checks[0].detail
    assert spark.statements == []


def test_a_store_that_turns_out_to_be_away_is_asked_for_the_first_of_its_tables() -> None:
    spark: Any = EmptySession(AWAY)
    tables = ["s3://gone/a", "s3://gone/b", "s3://gone/c"]
    checks = list(check_remote_tables(spark, tables, {}, None))
    assert [(check.name, check.status, check.code) for check in checks] == [("store", Status.FAIL, "T435")]
    assert checks[0].detail == "the object store does not answer at s3://gone/a and 2 more tables"
    assert len(spark.statements) == 1


def test_each_store_is_asked_for_itself() -> None:
    spark: Any = EmptySession(AWAY)
    list(check_remote_tables(spark, ["s3://gone/a", "s3://gone/b", "s3://other/c", "sales.orders"], {}, None))
    assert [statement.split("`")[-2:][0] for statement in spark.statements] == [
        "s3://gone/a",
        "s3://other/c",
        "sales.orders",
    ]


def test_a_catalog_that_does_not_answer_is_asked_for_one_name() -> None:
    spark: Any = EmptySession(CatalogAway("the catalog does not answer", help="look"))
    tables = ["sales.a", "sales.b", "unity.sales.a", "other.c"]
    checks = list(check_remote_tables(spark, tables, {}, None))
    assert [(check.name, check.status, check.code) for check in checks] == [("catalog", Status.FAIL, "E647")]
    assert checks[0].detail == "the catalog does not answer at sales.a and 3 more tables"
    assert spark.statements == ["sales.a", "unity.sales.a"]


def test_a_metastore_that_is_away_is_said_once() -> None:
    spark: Any = EmptySession(NO_TABLE)
    tables = [f"sales.t{number}" for number in range(5)]
    error = CatalogAway("no answer", found="thrift://h:1")
    away = dict.fromkeys(tables, Away(error))
    checks = list(check_remote_tables(spark, tables, away, None))
    assert [(check.name, check.status, check.code, check.detail) for check in checks] == [
        ("catalog", Status.FAIL, "E647", "no answer at sales.t0 and 4 more tables; found: thrift://h:1")
    ]
    assert spark.statements == []


def test_a_bucket_that_refuses_is_asked_for_two_tables_and_said_once_with_how_many() -> None:
    spark: Any = EmptySession(StoreRefusal("the object store does not know the access key", code="T440", help="keys"))
    tables = [f"s3://lake/t{number:02}" for number in range(30)] + ["s3://other/t", "sales.orders"]
    checks = list(check_remote_tables(spark, tables, {}, "s3://lake/t29"))
    assert [(check.name, check.status, check.code, check.fix) for check in checks] == [
        (name, Status.FAIL, "T440", "keys") for name in ("store", "store", "catalog")
    ]
    assert [check.detail.partition(" at ")[2] for check in checks] == [
        "s3://lake/t00 and 29 more tables",
        "s3://other/t",
        "sales.orders",
    ]
    assert len(spark.statements) == 4


class ListedTable:
    """A table of which only the log's folder is looked for."""

    def __init__(self, jvm: Any, location: str) -> None:
        self._location = location
        self.files = self

    def uri(self, path: str) -> str:
        return f"{self._location}/{path}"

    def children(self, uri: str, *, after: str) -> dict[str, object]:
        return {}

    def status(self, uri: str) -> object | None:
        if "away" in uri:
            raise StoreSilent("the object store does not answer")
        return None if "gone" in uri else uri


def test_a_permission_refused_on_one_path_is_that_tables_own_and_all_others_are_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spark: Any = EmptySession(TableError("permission denied", code="T405"))
    spark.folder_at = spark.hadoop_path = lambda place: place
    monkeypatch.setattr(doctor_storage, "TableStorage", ListedTable)
    tables = [f"s3://lake/t{number:02}" for number in range(12)]
    more = ["s3://lake/gone", "s3://away/a", "s3://away/b", "sales.orders"]
    checks = list(check_remote_tables(spark, [*tables, *more], {}, None))
    assert [check.name for check in checks] == [
        *(f"table {name}" for name in tables[:10]), "table s3://lake/gone", "store", "tables", "tables",
    ]  # fmt: skip
    assert [(check.status, check.code, check.detail) for check in checks[10:]] == [
        (Status.FAIL, "T401", "there is no Delta table"),
        (Status.FAIL, "T435", "the object store does not answer at s3://away/a and 1 more table"),
        (Status.OK, None, "the logs of 2 more can be listed; Spark opened the first 10, each takes it seconds"),
        (Status.OK, None, "1 more of a catalog not checked; Spark opened the first 10, each takes it seconds"),
    ]


def test_commits_are_tried_only_in_a_bucket_that_can_be_read() -> None:
    spark: Any = EmptySession(RuntimeError("no such table"))
    checks = list(check_remote_tables(spark, ["s3://lake/a", "/data/orders"], {}, None))
    assert [check.name for check in checks] == ["table s3://lake/a", "table /data/orders"]


def test_a_silent_file_system_of_paths_without_a_scheme_says_nothing_of_the_catalog() -> None:
    spark: Any = EmptySession(AWAY)
    list(check_remote_tables(spark, ["/data/a", "/data/b", "sales.orders"], {}, None))
    assert spark.statements == ["DESCRIBE DETAIL delta.`/data/a`", "sales.orders"]


@pytest.mark.parametrize(
    ("error", "ledger", "status", "code"),
    [
        (NO_TABLE, "s3://lake/ledger", Status.OK, None),
        (NO_TABLE, "s3://lake/other", Status.FAIL, "T402"),
        (AWAY, "s3://lake/ledger", Status.FAIL, "T435"),
    ],
)
def test_a_ledger_that_no_run_has_made_yet_is_no_failure(
    error: TableError, ledger: str, status: Status, code: str | None
) -> None:
    spark: Any = EmptySession(error)
    (check,) = check_remote_tables(spark, ["s3://lake/ledger"], {}, ledger)
    assert (check.status, check.code) == (status, code)
    assert "s3://lake/ledger" in check.name + check.detail
    if status is Status.OK:
        assert check.detail == "the ledger is not there yet; the first apply makes it"
