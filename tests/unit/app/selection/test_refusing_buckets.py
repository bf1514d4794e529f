"""A bucket that refused two tables for one reason is not asked for the others; another bucket is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from maintainer.app.engine_access import ProvingWorker
from maintainer.app.running.verify_commits import VerifyRequest, VerifyTarget, verify_tables
from maintainer.delta.log.table_place import StoragePlaces
from maintainer.engine.refusing_buckets import RefusingBuckets
from maintainer.errors import StoreRefusal
from maintainer.model.table.table_facts import TableFacts, TableRef
from tests.unit.app.running.test_verify import Answers, Bench
from tests.unit.app.selection.test_store_reach import Sign


def refusal(code: str, table: str) -> StoreRefusal:
    return StoreRefusal("refused", code=code, where=table, found="status 403", help="set the key")


def test_a_second_table_confirms_what_holds_for_the_bucket() -> None:
    buckets = RefusingBuckets()
    tables = [TableRef(f"s3://lake/t/t{number}") for number in range(4)]
    for table in tables[:2]:
        buckets.raise_known(table)
        buckets.refused(table, refusal("T440", table.identifier))
    with pytest.raises(StoreRefusal, match="T440") as caught:
        buckets.raise_known(tables[2])
    said = caught.value
    assert (said.where, said.found, said.help) == (tables[2].identifier, "status 403", "set the key")
    buckets.raise_known(TableRef("s3://other/t/t3"))
    buckets.raise_known(TableRef("/lake/t/t3"))
    buckets.raise_known(TableRef("sales.orders"))


def test_a_table_is_read_until_its_bucket_is_known_to_refuse_it() -> None:
    asked: list[str] = []

    class Refusing:
        def facts(self, ref: TableRef) -> TableFacts:
            asked.append(ref.identifier)
            raise refusal("T440", ref.identifier)

    reader: Any = Refusing()
    buckets = RefusingBuckets()
    names = [f"s3://lake/t/t{number}" for number in range(5)]
    for name in [*names, "s3://other/t"]:
        with pytest.raises(StoreRefusal) as caught:
            buckets.facts(reader, TableRef(name))
        assert (caught.value.code, caught.value.where) == ("T440", name)
    assert asked == [*names[:2], "s3://other/t"]


def test_two_reasons_confirm_nothing() -> None:
    buckets = RefusingBuckets()
    for code in ("T440", "T442"):
        buckets.refused(TableRef(f"s3://lake/{code}"), refusal(code, code))
    buckets.raise_known(TableRef("s3://lake/t"))


def test_verify_asks_a_bucket_that_refuses_for_two_of_its_tables(tmp_path: Path) -> None:
    asked: list[str] = []

    class Refusing(Answers):
        def facts(self, ref: TableRef) -> TableFacts:
            asked.append(ref.identifier)
            raise refusal("T440", ref.identifier)

    names = [f"s3://lake/t/t{number}" for number in range(5)]
    run = Bench(tmp_path).verify(Refusing({}), *names)
    assert asked == names[:2]
    assert [table.problem and (table.problem.code, table.problem.where) for table in run.tables] == [
        ("T440", name) for name in names
    ]


def test_verify_opens_no_table_whose_store_gives_no_sign_of_life(tmp_path: Path) -> None:
    asked: list[str] = []

    class Noting(Answers):
        def facts(self, ref: TableRef) -> TableFacts:
            asked.append(ref.identifier)
            raise refusal("T442", ref.identifier)

    bench, answers = Bench(tmp_path), Noting({})
    targets = [VerifyTarget(TableRef(name)) for name in ("s3://gone/a", "s3://gone/b", "s3://here/c")]
    away = {target.ref.identifier: Sign(target.ref, []) for target in targets}
    worker = ProvingWorker(answers, answers, StoragePlaces())
    run = verify_tables(bench.project, worker, bench.journal(), VerifyRequest(targets, away=away))
    assert asked == ["s3://here/c"]
    assert [table.problem and (table.problem.code, table.problem.where) for table in run.tables] == [
        ("T435", "s3://gone/a"), ("T435", "s3://gone/b"), ("T442", "s3://here/c"),
    ]  # fmt: skip
