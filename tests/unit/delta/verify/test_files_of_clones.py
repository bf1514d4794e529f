"""A shallow clone's files lie in other folders: in this bucket under another scheme, in other buckets, on the disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from obstore.store import MemoryStore

from maintainer.delta.jvm.sessions import DirectAccess
from maintainer.delta.storage import table_storage
from maintainer.delta.storage.object_files import Bucket
from maintainer.delta.storage.table_storage import TableStorage
from maintainer.delta.verify.version_reader import DeltaVersionReader, files_at
from maintainer.engine.store.object_storage import ObjectStorage
from tests.support.tables.builders import make_facts, make_file

SCHEMES = frozenset({"file", "s3", "s3a"})


@pytest.fixture
def buckets(monkeypatch: pytest.MonkeyPatch) -> Mapping[str, ObjectStorage]:
    """Two buckets in memory, whatever their schemes."""
    made = {name: ObjectStorage(MemoryStore(), f"memory://{name}") for name in ("lake", "archive")}
    monkeypatch.setattr(table_storage, "_client", lambda base_uri, conf: Bucket(made[base_uri.rpartition("/")[2]]))
    return made


def storage_at(location: str) -> TableStorage:
    return TableStorage(cast(Any, SimpleNamespace(direct=DirectAccess({}, SCHEMES))), location)


def missing(location: str, *paths: str) -> tuple[str, ...]:
    """Live files of four bytes that a check does not find."""
    jvm = SimpleNamespace(set_settings=lambda settings: None)
    live_files = SimpleNamespace(storage=storage_at)
    facts = make_facts(files=[make_file(path, size=4) for path in paths], location=location)
    return DeltaVersionReader(cast(Any, jvm), cast(Any, live_files)).missing_files(facts, facts.version).paths


@pytest.mark.parametrize("table", ["s3://lake/dev/orders", "s3a://lake/dev/orders"])
@pytest.mark.parametrize("source", ["s3://lake/prod/orders", "s3a://lake/prod/orders"])
def test_a_clone_in_one_bucket_has_its_files_by_any_scheme(
    buckets: Mapping[str, ObjectStorage], table: str, source: str
) -> None:
    for name in ("prod/orders/p=1/a", "prod/orders/p=2/a b", "dev/orders/c"):
        buckets["lake"].write(name, b"rows")
    paths = [f"{source}/p=1/a", f"{source}/p=2/a%20b", "c"]
    assert missing(table, *paths) == ()
    assert missing(table, *paths, f"{source}/p=1/gone") == (f"{source}/p=1/gone",)
    assert storage_at(table).status(storage_at(table).uri(paths[1])) is not None


def test_files_of_other_buckets_and_of_the_disk_are_looked_for_there(
    buckets: Mapping[str, ObjectStorage], tmp_path: Path
) -> None:
    buckets["archive"].write("prod/orders/a", b"rows")
    buckets["archive"].write("b", b"rows")
    buckets["lake"].write("ve/prod/orders/gone", b"rows")
    (tmp_path / "d").write_bytes(b"rows")
    elsewhere = ["s3://archive/prod/orders/a", "s3a://archive/b", f"file:{tmp_path}/d"]
    for table in ("s3://lake/dev/orders", f"file:{tmp_path}/t"):
        gone = "s3://archive/prod/orders/gone"
        assert missing(table, *elsewhere, gone) == (gone,)
        assert set(files_at(storage_at(table), {*elsewhere})) == set(elsewhere)
        assert storage_at(table).status(elsewhere[0]) is not None
