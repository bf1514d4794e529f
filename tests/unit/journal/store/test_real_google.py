"""The store of a state on a server of Google's protocol: conditions, leases, what is fetched.

fake-gcs-server decides about each condition; the proxy before it only spells the XML protocol's writes in JSON's.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from maintainer.engine.store.cloud_settings import store_settings
from maintainer.engine.store.object_storage import ObjectStorage
from maintainer.journal.folder.documents import StoredDocument, documents_in
from maintainer.journal.memory.table_records import remembered
from tests.support.runs.machines import Machine, now_ms
from tests.support.stores.store_servers import GOOGLE_KEY, fake_gcs
from tests.support.tables.builders import make_facts, make_files

pytestmark = pytest.mark.nightly

FACTS = make_facts(files=make_files(10))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with fake_gcs("lake") as url:
        yield url


@pytest.fixture
def storage(url: str, tmp_path: Path) -> ObjectStorage:
    key_file = tmp_path / "key.json"
    key_file.write_text(json.dumps(GOOGLE_KEY))
    uri = f"gs://lake/{secrets.token_hex(4)}"
    conf = {"storage.root.url": f"{url}/", "auth.service.account.json.keyfile": str(key_file)}
    settings = store_settings(uri, {f"spark.hadoop.fs.gs.{key}": value for key, value in conf.items()})
    return ObjectStorage.open(uri, settings)


def test_a_document_is_replaced_only_as_it_was_read(storage: ObjectStorage) -> None:
    documents = documents_in(storage, "leases")
    assert (documents.names(), documents.read("a.json")) == ([], None)
    assert documents.replace("a.json", b"1", None)
    assert not documents.replace("a.json", b"2", None)
    assert documents.replace("a.json", b"1", None), "our own write, whose answer was lost"
    before = documents.read("a.json")
    assert before is not None
    assert documents.replace("a.json", b"2", before)
    assert not documents.replace("a.json", b"3", before)
    assert not documents.replace("gone.json", b"3", StoredDocument(b"", before.tag))
    assert documents.names() == ["a.json"]
    documents.storage.remove("leases/a.json")
    documents.storage.remove("leases/a.json")
    assert documents.names() == []


def test_a_run_on_one_machine_is_known_on_the_next(storage: ObjectStorage, tmp_path: Path) -> None:
    first = Machine(storage, tmp_path / "a")
    journal = first.begin()
    journal.quarantine(FACTS, "why")
    first.end(journal)
    second = Machine(storage, tmp_path / "b", 5)
    other = second.begin()
    (record,) = remembered(second.mirror.runs_dir).tables[FACTS.table_id].values()
    assert [each.reason for each in record.quarantines.values()] == ["why"]
    second.end(other)
    assert [stored.name for stored in storage.listed("alive/")] == []


def test_what_did_not_change_is_fetched_once(
    storage: ObjectStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read is answered with a generation, which a listing does not have."""
    first = Machine(storage, tmp_path / "a")
    journal = first.begin()
    first.end(journal)
    (first.mirror.runs_dir / journal.run_id / "lessons.json").write_text("{}")
    first.mirror.publish()
    second = Machine(storage, tmp_path / "b")
    second.mirror.fetch(now_ms(), everything=True)
    names: list[str] = []
    monkeypatch.setattr(ObjectStorage, "read", lambda _, name: names.append(name))
    for machine in (first, second):
        machine.mirror.fetch(now_ms(), everything=True)
    assert [name for name in names if journal.run_id in name] == []
