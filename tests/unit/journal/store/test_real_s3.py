"""The store of a state over HTTP: a real S3 server, one that ignores conditions, one that is gone, wrong names."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

import pytest

from maintainer.engine.store import store_clients
from maintainer.engine.store.cloud_settings import store_settings
from maintainer.engine.store.object_storage import ObjectStorage
from maintainer.engine.store.store_clients import ObjectBody
from maintainer.engine.store.store_failures import StoreFailure
from maintainer.errors import EnvironmentUnfit
from maintainer.journal.folder.documents import StoredDocument, documents_in
from maintainer.journal.journal import Journal
from maintainer.journal.memory.table_records import remembered
from tests.support.runs.machines import Machine, intend, now_ms
from tests.support.stores.s3_server import S3Server, s3_server, spark_keys
from tests.support.stores.sick_store import ALWAYS, Fault, FaultRule
from tests.support.tables.builders import make_facts, make_files

FACTS = make_facts(files=make_files(10))


@pytest.fixture
def server() -> Iterator[S3Server]:
    with s3_server("lake") as server:
        yield server


def opened(server: S3Server, uri: str | None = None, **other: str) -> ObjectStorage:
    uri = uri or f"s3://lake/{secrets.token_hex(4)}"
    return ObjectStorage.open(uri, store_settings(uri, {**spark_keys(server), **other}))


def test_a_setting_wins_over_the_environment(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of another account")
    storage = opened(server)
    storage.write("a", b"1")
    assert [stored.name for stored in storage.listed("")] == ["a"]
    assert os.environ["AWS_SESSION_TOKEN"] == "of another account"


def test_a_document_is_replaced_only_as_it_was_read(server: S3Server) -> None:
    documents = documents_in(opened(server), "leases")
    assert documents.names() == []
    assert documents.read("a.json") is None
    assert documents.replace("a.json", b"1", None)
    assert not documents.replace("a.json", b"2", None)
    assert documents.replace("a.json", b"1", None), "our own write, whose answer was lost"
    before = documents.read("a.json")
    assert before is not None
    assert documents.replace("a.json", b"2", before)
    assert not documents.replace("a.json", b"3", before)
    assert not documents.replace("gone.json", b"3", StoredDocument(b"", before.tag))
    assert (documents.names(), documents.place("a.json")[-14:]) == (["a.json"], "/leases/a.json")
    documents.remove("a.json")
    documents.remove("a.json")
    assert documents.names() == []


def race(writers: Executor, storages: Sequence[ObjectStorage], name: str, before: ObjectBody | None) -> list[bytes]:
    """Let each of several writers replace what was read, all at once, and return the contents that were written."""
    together = threading.Barrier(len(storages))

    def write(storage: ObjectStorage) -> bytes | None:
        content = secrets.token_hex(8).encode()
        together.wait(30)
        return content if storage.replace(name, content, before) else None

    return [content for content in writers.map(write, storages) if content is not None]


@pytest.mark.parametrize(("keeps_conditions", "num_winners"), [(True, 1), (False, 2)])
def test_of_two_writers_of_one_key_one_wins(*, keeps_conditions: bool, num_winners: int) -> None:
    """Both make the key, and then replace what both have read; a server without conditions tells both that they won."""
    with s3_server("lake", keeps_conditions=keeps_conditions) as server, ThreadPoolExecutor(2) as writers:
        storages = [opened(server, "s3://lake/races") for _ in range(2)]
        for number in range(20):
            before = None
            for _ in ("made", "replaced"):
                won = race(writers, storages, f"{number}.json", before)
                before = storages[0].read(f"{number}.json")
                assert before is not None
                assert (len(won), before.data in won) == (num_winners, True)


def test_the_clock_is_the_stores(server: S3Server) -> None:
    storage = opened(server)
    assert storage.store_ms() > 0
    assert storage.store_ms() <= storage.store_ms()


def test_a_server_that_ignores_conditions_is_noticed(tmp_path: Path) -> None:
    with s3_server("lake", keeps_conditions=False) as server, pytest.raises(StoreFailure) as refused:
        Machine(opened(server), tmp_path).begin()
    assert (refused.value.code, refused.value.found) == ("E684", "a second write replaced what a first one had made")


def test_a_bucket_that_is_not_there(server: S3Server) -> None:
    storage = opened(server, "s3://elsewhere/state")
    for ask in (lambda: storage.listed("runs/"), lambda: storage.read("state.json"), lambda: storage.store_ms()):
        with pytest.raises(StoreFailure) as refused:
            ask()
        assert refused.value.code == "E683", refused.value.found


@pytest.mark.parametrize(
    ("setting", "code"), [("access.key", "InvalidAccessKeyId"), ("secret.key", "SignatureDoesNotMatch")]
)
def test_credentials_that_the_server_does_not_know(server: S3Server, setting: str, code: str) -> None:
    storage = opened(server, **{f"spark.hadoop.fs.s3a.{setting}": "another"})
    for ask in (lambda: storage.listed("runs/"), lambda: storage.read("state.json"), lambda: storage.store_ms()):
        with pytest.raises(StoreFailure) as refused:
            ask()
        assert (refused.value.code, code in refused.value.found) == ("E682", True)
        assert "spark: conf:" in refused.value.help


def test_a_store_that_does_not_answer(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_clients, "MAX_RETRIES", 0)
    storage = opened(server)
    server.stop()
    with pytest.raises(StoreFailure) as refused:
        storage.store_ms()
    unfit = refused.value.unfit(storage.uri)
    assert isinstance(unfit, EnvironmentUnfit)
    assert (unfit.code, unfit.where) == ("E681", storage.uri)
    assert (unfit.found or "").endswith("(Connection refused)")
    assert "secret" not in str(unfit)


@pytest.mark.parametrize("times", [1, ALWAYS])
@pytest.mark.parametrize(
    ("method", "ask"),
    [
        ("GET", lambda storage: storage.listed("runs/")),
        ("GET", lambda storage: storage.children("runs/")),
        ("POST", lambda storage: storage.remove("a")),
    ],
    ids=["list", "children", "remove"],
)
def test_an_answer_that_breaks_off_is_asked_for_once_more(
    server: S3Server, method: str, ask: Callable[[ObjectStorage], object], times: int
) -> None:
    storage = opened(server)
    storage.write("a", b"1")
    storage.write("runs/a", b"2")
    well = ask(storage)
    cut = server.faults.add(FaultRule(Fault.CUT_ANSWER, method, "/lake", times=times))
    if times == 1:
        assert ask(storage) == well
    else:
        with pytest.raises(StoreFailure) as failure:
            ask(storage)
        assert failure.value.code == "E681"
    assert cut.num_met == min(times, 2)


def test_settings_that_no_store_takes_are_an_error(server: S3Server) -> None:
    with pytest.raises(EnvironmentUnfit) as refused:
        ObjectStorage.open("s3://", store_settings("s3://", spark_keys(server)))
    assert refused.value.code in ("E681", "E683")


def test_credentials_of_the_environment_are_taken(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "AWS_ENDPOINT_URL": server.url,
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }.items():
        monkeypatch.setenv(name, value)
    storage = ObjectStorage.open("s3://lake/env", store_settings("s3://lake/env", {}))
    storage.write("a", b"1")
    document = opened(server, "s3://lake/env").read("a")
    assert document is not None
    assert document.data == b"1"


def test_a_run_on_one_machine_is_known_on_the_next(server: S3Server, tmp_path: Path) -> None:
    storage = opened(server)
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


@pytest.mark.parametrize("versioned", [False, True], ids=["plain", "versioned"])
def test_what_did_not_change_is_fetched_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, versioned: bool
) -> None:
    """A bucket that keeps versions names one in the answer to a read or a write, and none in a listing."""
    with s3_server("lake", keeps_versions=versioned) as server:
        check_fetched_once(opened(server), tmp_path, monkeypatch)


def check_fetched_once(storage: ObjectStorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Machine(storage, tmp_path / "a")
    journal = first.begin()
    journal.quarantine(FACTS, "why")
    first.end(journal)
    (tmp_path / "a" / "runs" / journal.run_id / "lessons.json").write_text("{}")
    first.mirror.publish()
    names: list[str] = []
    read = ObjectStorage.read

    def counted(storage: ObjectStorage, name: str) -> ObjectBody | None:
        names.append(name)
        return read(storage, name)

    monkeypatch.setattr(ObjectStorage, "read", counted)
    for machine, fetches in ((first, False), (second := Machine(storage, tmp_path / "b"), True), (second, False)):
        names.clear()
        machine.mirror.fetch(now_ms(), everything=True)
        of_the_run = [name for name in names if journal.run_id in name]
        assert bool(of_the_run) == fetches, of_the_run


def test_a_server_that_comes_back_gets_what_waited(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_clients, "MAX_RETRIES", 0)
    storage = opened(server)
    first = Machine(storage, tmp_path / "a")
    journal: Journal = first.begin()
    intend(journal, FACTS)
    server.stop()
    journal.quarantine(FACTS, "seen while it was away")
    journal.close()
    problem = first.run.end()
    assert problem is not None
    assert problem.code == "E686"
    server.restart()
    again = Machine(storage, tmp_path / "a", 5)
    again.end(again.begin())
    second = Machine(storage, tmp_path / "b", 9)
    other = second.begin()
    (record,) = remembered(second.mirror.runs_dir).tables[FACTS.table_id].values()
    assert [each.reason for each in record.quarantines.values()] == ["seen while it was away"]
    second.end(other)
