"""The store of a state on a server of Azure's protocol (Azurite): conditions, leases, what each refusal is called."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from maintainer.engine.store import store_clients
from maintainer.engine.store.cloud_settings import store_settings
from maintainer.engine.store.object_storage import ObjectStorage
from maintainer.engine.store.store_failures import StoreFailure
from maintainer.journal.folder.documents import StoredDocument, documents_in
from maintainer.journal.memory.table_records import remembered
from tests.support.runs.machines import Machine
from tests.support.stores.store_servers import AZURE_ACCOUNT, AZURE_KEY, azurite
from tests.support.tables.builders import make_facts, make_files

pytestmark = pytest.mark.nightly

FACTS = make_facts(files=make_files(10))
HOST = f"{AZURE_ACCOUNT}.dfs.core.windows.net"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with azurite("lake") as endpoint:
        yield endpoint


@pytest.fixture(autouse=True)
def at_the_server(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", endpoint)
    monkeypatch.setattr(store_clients, "MAX_RETRIES", 0)


def opened(container: str = "lake", key: str = AZURE_KEY) -> ObjectStorage:
    uri = f"abfss://{container}@{HOST}/{secrets.token_hex(4)}"
    return ObjectStorage.open(uri, store_settings(uri, {f"spark.hadoop.fs.azure.account.key.{HOST}": key}))


def test_a_document_is_replaced_only_as_it_was_read() -> None:
    documents = documents_in(opened(), "leases")
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


def test_a_run_on_one_machine_is_known_on_the_next(tmp_path: Path) -> None:
    storage = opened()
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


@pytest.mark.parametrize(
    ("container", "key", "code"), [("elsewhere", AZURE_KEY, "E683"), ("lake", "bm90IHRoZSBrZXk=", "E682")]
)
def test_what_is_refused(container: str, key: str, code: str) -> None:
    store = opened(container, key)
    for ask in (lambda: store.listed("runs/"), lambda: store.read("state.json"), lambda: store.store_ms()):
        with pytest.raises(StoreFailure) as refused:
            ask()
        assert refused.value.code == code, refused.value.found
        assert key not in str(refused.value)
