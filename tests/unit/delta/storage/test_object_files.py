"""Files on an object store: what a folder holds, names of every kind, what is kept, and when Hadoop is asked."""

from __future__ import annotations

import random
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from obstore.store import MemoryStore

from maintainer.delta.storage import object_files
from maintainer.delta.storage.failures.engine_failures import as_table_error
from maintainer.delta.storage.failures.store_answers import (
    BucketMissing,
    KeysMissing,
    KeysRefused,
    StoreAway,
    StoreBusy,
)
from maintainer.delta.storage.file_store import FileStore, StoredFile, TransferError, java_quote, seen_of
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.delta.storage.object_files import Bucket, ObjectFiles
from maintainer.engine.store.cloud_settings import store_settings
from maintainer.engine.store.object_storage import ObjectStorage
from maintainer.engine.store.store_clients import ObjectBody, StoredObject
from maintainer.engine.store.store_failures import (
    BUSY,
    NO_CREDENTIALS,
    REFUSED,
    UNREACHABLE,
    StoreFailure,
    store_failure,
)
from tests.support.stores.s3_server import S3Server, spark_keys
from tests.support.stores.sick_store import ALWAYS, Fault, FaultRule

NAMES = (
    "a b",
    "50%",
    "x+y",
    "p=2020-05-05 00%3A00%3A00",
    "gr\u00f6\u00dfe",
    unicodedata.normalize("NFD", "\u00fc"),
    "q?r#s",
)


def stored(*names: str) -> ObjectStorage:
    storage = ObjectStorage(MemoryStore(), "memory://lake")
    for name in names:
        storage.write(name, name.encode())
    return storage


def files_on(storage: ObjectStorage, hadoop: FileStore | None = None, base_uri: str = "s3a://lake") -> ObjectFiles:
    def asked() -> FileStore:
        assert hadoop is not None, "Hadoop was asked"
        return hadoop

    return ObjectFiles(base_uri, Bucket(storage), asked)


@pytest.fixture(params=["disk", "store", "server"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[FileStore, str]:
    """An empty folder on a disk, on a store in memory, and on a real server: all do the same."""
    if request.param == "disk":
        (tmp_path / "t").mkdir()
        return LocalFiles(), f"file:{tmp_path}/t"
    if request.param == "store":
        return files_on(stored()), "s3a://lake/t"
    settings = store_settings("s3a://lake", spark_keys(request.getfixturevalue("server")), {})
    return files_on(ObjectStorage.open("s3a://lake", settings)), f"s3a://lake/{tmp_path.name}"


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_the_same_in_a_listing_a_look_and_a_read(place: tuple[FileStore, str], name: str) -> None:
    files, root = place
    uri = f"{root}/{java_quote(name)}/f.parquet"
    files.write(uri, b"rows")
    (folder,) = files.children(root).values()
    assert (folder.name, folder.is_dir) == (name, True)
    (file,) = files.children(folder.uri).values()
    assert (file.uri, file.size_bytes, file.is_dir) == (uri, 4, False)
    look = files.status(uri)
    assert look is not None
    assert (look.uri, look.size_bytes) == (uri, 4)
    assert (files.read(uri), files.read(uri, first_bytes=2), next(files.read_many([file]))) == (b"rows", b"ro", b"rows")
    assert files.status(folder.uri) == folder or place[0].__class__ is LocalFiles


def test_what_is_missing_is_none_nothing_and_an_error(place: tuple[FileStore, str]) -> None:
    files, root = place
    assert (files.status(f"{root}/no"), files.children(f"{root}/no")) == (None, {})
    with pytest.raises(FileNotFoundError):
        files.read(f"{root}/no")
    with pytest.raises(FileNotFoundError):
        files.read(f"{root}/no", first_bytes=1)
    with pytest.raises(FileNotFoundError):
        next(files.read_many([StoredFile(f"{root}/no", 1, 0, False, False)]))


def test_a_file_is_written_once(place: tuple[FileStore, str]) -> None:
    files, root = place
    files.write(f"{root}/f", b"first")
    with pytest.raises(FileExistsError):
        files.write(f"{root}/f", b"second")
    assert files.read(f"{root}/f") == b"first"


def test_a_listing_may_begin_behind_a_name(place: tuple[FileStore, str]) -> None:
    files, root = place
    for number in range(5):
        files.write(f"{root}/{number:020d}.json", b"{}")
    files.write(f"{root}/_sidecars/x.parquet", b"x")
    names = [file.name for file in files.children(root, after=f"{2:020d}.json").values() if not file.is_dir]
    assert sorted(names) == [f"{number:020d}.json" for number in (3, 4)]


@pytest.mark.parametrize("num_folders", [1, 3, 40])
def test_many_folders_are_listed_as_one_by_one(place: tuple[FileStore, str], num_folders: int) -> None:
    files, root = place
    folders = [f"{root}/p={number}/q=x%20y" for number in range(num_folders)]
    for folder in folders:
        for name in ("a.parquet", "b.parquet", "deeper/_delta_log/0.json"):
            files.write(f"{folder}/{name}", b"rows")
    asked = [*folders, f"{root}/none", root]
    listed: set[str] = set()
    many = files.children_of(asked, listed.update)
    assert listed >= {f"{folder}/{name}" for folder in folders for name in ("a.parquet", "b.parquet")}
    for folder in asked:
        assert {uri: file.is_dir for uri, file in many[folder].items()} == {
            uri: file.is_dir for uri, file in files.children(folder).items()
        }
    files.write(f"{root}/.a.parquet.crc", b"sum")
    names = {uri for folder in asked for uri in files.children(folder)}
    assert set(files.names_in(asked)) == {uri for uri in names if not uri.endswith(".crc")}
    wanted = [f"{folder}/{name}" for folder in folders for name in ("a.parquet", "no", "deeper", "deeper/_delta_log")]
    told: list[tuple[int, int]] = []
    files.children_of(asked, seen_of(wanted, lambda *seen: told.append(seen)))
    there = files.look_many([*wanted, *folders])
    assert (told[0], told) == ((0, len(wanted)), sorted(told))
    assert {uri: file.is_dir for uri, file in there.items()} == {
        uri: status.is_dir for uri in [*wanted, *folders] if (status := files.status(uri)) is not None
    }


class Asked(ObjectStorage):
    """A store that notes each listing."""

    def __init__(self, storage: ObjectStorage) -> None:
        super().__init__(storage._client, storage.uri)
        self.listings: list[str] = []

    def below(self, prefix: str, after: str | None = None) -> Iterator[StoredObject]:
        self.listings.append("all")
        return super().below(prefix, after)

    def children(self, prefix: str) -> tuple[list[StoredObject], list[str]]:
        self.listings.append("one")
        return super().children(prefix)


def test_many_folders_cost_one_request_and_at_most_one_each_more(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Asked(stored(*(f"t/p={number}/f" for number in range(50))))
    folders = [f"s3a://lake/t/p={number}" for number in range(50)]
    assert all(len(found) == 1 for found in files_on(storage).children_of(folders).values())
    assert storage.listings == ["all"]
    monkeypatch.setattr(object_files, "LISTED_AT_ONCE", 1)
    assert all(len(found) == 1 for found in files_on(storage).children_of(folders[:40]).values())
    assert storage.listings == ["all", "all", *["one"] * 40]


def test_folders_of_many_pages_are_listed_page_by_page_without_what_lies_below(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one listing of all is too long, each folder is listed by itself."""
    numbers = [(folder, number) for folder in ("", "p=1/", "p=2/") for number in range(25)]
    storage = Asked(stored(*(f"t/{folder}f{number}" for folder, number in numbers), "t/p=1/deep/x", "t/p=1/deeper/y"))
    monkeypatch.setattr(object_files, "LISTED_AT_ONCE", 10)
    found = list(files_on(storage).listed_in([f"s3a://lake/t{folder}" for folder in ("", "/p=1", "/p=2", "/no")]))
    names = {f"t/{folder}f{number}": False for folder, number in numbers}
    names |= dict.fromkeys(["t/p=1", "t/p=2", "t/p=1/deep", "t/p=1/deeper"], True)
    assert {file.uri.removeprefix("s3a://lake/"): file.is_dir for file in found} == names
    assert len(found) == len(names)
    assert all(file.size_bytes == len(file.uri.removeprefix("s3a://lake/")) for file in found if not file.is_dir)
    assert sorted(storage.listings) == ["all", *["all"] * 4, "one", "one"], "t and p=1, where folders lie, are listed"


def test_an_empty_object_that_marks_a_folder_is_no_file() -> None:
    storage = stored("t/p=1/f")
    storage.write("t/p=1", b"")
    storage.write("t", b"")
    children = files_on(storage).children("s3a://lake/t")
    assert [(file.name, file.is_dir) for file in children.values()] == [("p=1", True)]


class Counting(ObjectStorage):
    """The same store, which notes what is read."""

    def __init__(self, storage: ObjectStorage) -> None:
        super().__init__(storage._client, storage.uri)
        self.reads: list[str] = []

    def read(self, name: str) -> ObjectBody | None:
        self.reads.append(name)
        return super().read(name)


def test_many_bodies_come_in_order_and_each_is_read_once_while_it_is_the_same() -> None:
    names = [f"log/{number:03d}" for number in range(100)]
    storage = Counting(stored(*names))
    files = files_on(storage)
    listed = list(files.children("s3a://lake/log").values())
    for _ in range(2):
        assert list(files.read_many(listed)) == [name.encode() for name in names]
    assert sorted(storage.reads) == names
    storage.write(names[0], b"overwritten")
    again = files.children("s3a://lake/log")[f"s3a://lake/{names[0]}"]
    assert list(files.read_many([again])) == [b"overwritten"]


def test_what_is_forgotten_is_read_again_and_nothing_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_files, "_PROCESS", object_files._Process())
    storage = Counting(stored("a/log/0", "a/log/1", "ab/log/0"))
    files = files_on(storage)
    listed = [file for folder in ("a", "ab") for file in files.children(f"s3a://lake/{folder}/log").values()]
    assert len(list(files.read_many(listed))) == 3
    assert files.forget("s3a://lake/a") > 0
    assert len(list(files.read_many(listed))) == 3
    assert Counter(storage.reads) == {"a/log/0": 2, "a/log/1": 2, "ab/log/0": 1}
    assert object_files._PROCESS.num_bytes == sum(map(len, object_files._PROCESS.bodies.values()))


def test_a_log_of_more_bytes_than_are_kept_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_files, "BODIES_KEPT_BYTES", 40_000)
    monkeypatch.setattr(object_files, "_PROCESS", object_files._Process())
    line = '{"add":{"path":"part-%d.parquet"}}\n'
    commits = {f"log/{number:03d}": (line % number).encode() * 40 for number in range(100)}
    assert sum(map(len, commits.values())) > 2 * 40_000
    storage = Counting(stored())
    for name, body in commits.items():
        storage.write(name, body)
    files = files_on(storage)
    listed = list(files.children("s3a://lake/log").values())
    for _ in range(2):
        assert list(files.read_many(listed)) == list(commits.values())
    assert sorted(storage.reads) == list(commits)


def test_a_large_commit_is_kept_by_the_bytes_that_keeping_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_files, "BODIES_KEPT_BYTES", 40_000)
    monkeypatch.setattr(object_files, "_PROCESS", object_files._Process())
    bodies = {
        "log/alike": b'{"remove":{"path":"part.parquet"}}\n' * 1000,
        "log/random": random.Random(1).randbytes(20_000),
    }
    storage = Counting(stored())
    for name, body in bodies.items():
        storage.write(name, body)
    files = files_on(storage)
    listed = list(files.children("s3a://lake/log").values())
    for _ in range(2):
        assert list(files.read_many(listed)) == list(bodies.values())
    assert Counter(storage.reads) == {"log/alike": 1, "log/random": 2}


class Failing(ObjectStorage):
    """A store that fails in one way, and counts how often it is asked."""

    def __init__(self, failure: StoreFailure) -> None:
        super().__init__(MemoryStore(), "memory://lake")
        self.failure, self.asked = failure, 0

    def head(self, name: str) -> Any:
        self.asked += 1
        raise self.failure


def test_what_the_store_refuses_is_asked_again_through_hadoop(tmp_path: Path) -> None:
    storage = Failing(StoreFailure(REFUSED, "status code: 403"))
    files = files_on(storage, LocalFiles())
    assert (files.status("s3a://lake/no"), files.status("s3a://lake/no"), storage.asked) == (None, None, 2)


def test_a_store_that_does_not_accept_the_keys_is_not_asked_through_hadoop_which_has_the_same(
    server: S3Server,
) -> None:
    keys = {**spark_keys(server), "spark.hadoop.fs.s3a.secret.key": "wrong"}
    files = files_on(ObjectStorage.open("s3a://lake", store_settings("s3a://lake", keys, {})))
    for ask in (files.children, files.status, files.read):
        with pytest.raises(KeysRefused) as raised:
            ask("s3a://lake/t")
        error = as_table_error(raised.value, "s3a://lake/t")
        assert (error.code, error.where) == ("T440", "s3a://lake/t")
        assert str(error.found).endswith(
            "does not match the signature you provided (status 403, SignatureDoesNotMatch)"
        )
        assert "AWS_SECRET_ACCESS_KEY" in str(error.help)


def test_a_bucket_that_is_not_there_is_not_looked_for_through_hadoop(server: S3Server) -> None:
    uri = "s3a://lakee"
    files = files_on(ObjectStorage.open(uri, store_settings(uri, spark_keys(server), {})), base_uri=uri)
    for ask in (files.children, files.status, files.read):
        with pytest.raises(BucketMissing) as raised:
            ask("s3a://lakee/t")
        error = as_table_error(raised.value, "s3a://lakee/t")
        assert (error.code, error.where) == ("T442", "s3a://lakee/t")
        assert error.found == "The specified bucket does not exist (status 404, NoSuchBucket)"


def test_a_name_whose_signature_alone_is_refused_is_asked_again_through_hadoop(server: S3Server) -> None:
    refusal = ("403 Forbidden", "SignatureDoesNotMatch", "The signature does not match")
    server.faults.add(FaultRule(Fault.REFUSES, "*", "/lake/odd", "", ALWAYS, answer=refusal))
    settings = store_settings("s3a://lake", spark_keys(server), {})
    files = files_on(ObjectStorage.open("s3a://lake", settings), LocalFiles())
    assert files.status("s3a://lake/odd") is None


def test_a_store_for_which_there_are_no_credentials_is_read_through_hadoop_from_then_on() -> None:
    storage = Failing(StoreFailure(NO_CREDENTIALS, "169.254.169.254"))
    files = files_on(storage, LocalFiles())
    assert (files.status("s3a://lake/no"), files.status("s3a://lake/no"), storage.asked) == (None, None, 1)


def test_where_hadoop_has_no_other_keys_it_is_not_asked_for_any() -> None:
    storage = Failing(store_failure(OSError("Error performing PUT http://169.254.169.254/latest/api/token in 1s")))
    storage.children = storage.head  # type: ignore[assignment,method-assign]
    files = ObjectFiles("s3a://lake", Bucket(storage), LocalFiles, hadoop_has_more_keys=False)
    with pytest.raises(KeysMissing):
        files.children_of(["s3a://lake/t"])
    with pytest.raises(KeysMissing) as raised:
        files.status("s3a://lake/t")
    error = as_table_error(raised.value, "s3a://lake/t")
    assert (error.code, error.where) == ("T441", "s3a://lake/t")
    assert "no credentials in the settings or the environment" in str(error.found)
    assert "AWS_ACCESS_KEY_ID" in str(error.help)


@pytest.mark.parametrize("more", [False, True])
def test_a_store_that_had_keys_and_gets_no_new_ones_is_busy_and_neither_refused_nor_left(more: bool) -> None:
    """A transfer without them leaves its bin to another lane."""
    storage = Failing(store_failure(OSError("Error performing PUT http://169.254.169.254/latest/api/token in 1s")))
    files = ObjectFiles("s3a://lake", Bucket(storage), LocalFiles, hadoop_has_more_keys=more)
    assert files.children("s3a://lake/t") == {}
    for _ in range(2):
        with pytest.raises(StoreBusy) as raised:
            files.status("s3a://lake/t")
    assert (as_table_error(raised.value, "s3a://lake/t").code, storage.asked) == ("T444", 2)
    storage.download = lambda *_: storage.head("")  # type: ignore[method-assign]
    with pytest.raises(TransferError, match="no credentials"):
        files.download("s3a://lake/t/a", "not made")


def test_a_transfer_that_the_store_refuses_says_so(tmp_path: Path) -> None:
    class Refusing(ObjectStorage):
        def download(self, name: str, path: str) -> Any:
            raise StoreFailure(REFUSED, "status code: 403")

        def upload(self, path: str, name: str) -> Any:
            raise StoreFailure(REFUSED, "status code: 403")

    files = files_on(Refusing(MemoryStore(), "memory://lake"))
    with pytest.raises(TransferError, match="s3a://lake: status code: 403"):
        files.download("s3a://lake/f", str(tmp_path / "f"))
    with pytest.raises(TransferError, match="s3a://lake: status code: 403"):
        files.upload(str(tmp_path / "f"), "s3a://lake/f")
    with pytest.raises(TransferError, match="is not there"):
        files_on(stored()).download("s3a://lake/no", str(tmp_path / "f"))


@pytest.mark.parametrize(
    ("failure", "kind", "code"),
    [
        (StoreFailure(UNREACHABLE, "error sending request", gave_no_answer=True), StoreAway, "T435"),
        (StoreFailure(BUSY, "status code: 503"), StoreBusy, "T444"),
    ],
)
def test_a_store_without_an_answer_is_not_asked_a_second_time(
    failure: StoreFailure, kind: type[StoreAway], code: str
) -> None:
    with pytest.raises(kind) as raised:
        files_on(Failing(failure)).status("s3a://lake/t")
    error = as_table_error(raised.value, "s3a://lake/t")
    assert (error.code, error.where) == (code, "s3a://lake/t")
    assert failure.found in str(error.found)


@pytest.mark.parametrize("uri", ["s3://lake/t/f", "s3a://archive/t/f", "s3a://lakes/t/f", "file:/t/f"])
def test_a_uri_of_another_place_is_refused_and_never_taken_for_one_of_its_own(uri: str, tmp_path: Path) -> None:
    files = files_on(stored("t/f", "f", "/f", "s/t/f", "ve/t/f", "/t/f"))
    for ask in (files.status, files.read, files.children, lambda uri: files.download(uri, str(tmp_path / "f"))):
        with pytest.raises(TransferError, match=f"{uri} is not on s3a://lake"):
            ask(uri)
    with pytest.raises(TransferError):
        files.children_of([uri, "s3a://lake/t"])
