"""Reading folders: Hadoop's text of many files at once, and the local disk."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from maintainer.delta.storage import hadoop_files
from maintainer.delta.storage.file_identity import canonical_uri
from maintainer.delta.storage.file_store import DeletedMany, StoredFile
from maintainer.delta.storage.file_store import java_quote as quote
from maintainer.delta.storage.hadoop_files import HadoopFiles, parse_statuses
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.engine.store import store_pace
from maintainer.engine.store.request_count import REQUEST_COUNT
from maintainer.engine.store.store_pace import StorePace
from maintainer.model.table.store_requests import StoreRequests

S3 = (
    "Array(S3AFileStatus{path=s3a://b/t/p=a b/x.parquet; isDirectory=false; length=12; replication=1; "
    "blocksize=33554432; modification_time=1700000000000; access_time=0; owner=ann; group=ann; "
    "permission=rw-rw-rw-; isSymlink=false; hasAcl=false; isEncrypted=true; isErasureCoded=false} "
    "isEmptyDirectory=FALSE eTag=e versionId=v, S3AFileStatus{path=s3a://b/t/d; isDirectory=true; "
    "modification_time=1700000000001; access_time=0; owner=ann; group=ann; permission=rwxrwxrwx; isSymlink=false; "
    "hasAcl=false; isEncrypted=true; isErasureCoded=false} isEmptyDirectory=FALSE eTag=null versionId=null)"
)
HDFS = (
    "Array(HdfsLocatedFileStatus{path=hdfs://n:8020/t/x;isDirectory=false; length=3; replication=3; blocksize=1; "
    "modification_time=5; access_time=6; owner=o; group=g; permission=rw-r--r--; isSymlink=false; hasAcl=false})"
)


def test_a_folders_children_are_read_from_one_text() -> None:
    assert parse_statuses(S3) == [
        StoredFile("s3a://b/t/p=a%20b/x.parquet", 12, 1_700_000_000_000, False, False),
        StoredFile("s3a://b/t/d", 0, 1_700_000_000_001, True, False),
    ]
    assert parse_statuses(HDFS) == [StoredFile("hdfs://n:8020/t/x", 3, 5, False, False)]
    assert parse_statuses("Array()") == []


@pytest.mark.parametrize("text", ["Array(Something{x})", "Array(FileStatus{path=a; isDirectory=false; mod})"])
def test_a_text_that_is_not_known_is_not_guessed(text: str) -> None:
    assert parse_statuses(text) is None


VIEW = (
    "Array(ViewFsFileStatus{path=null; isDirectory=false; length=0; replication=0; blocksize=0; modification_time=0; "
    "access_time=0; owner=; group=; permission=rw-rw-rw-; isSymlink=false; hasAcl=false; isEncrypted=false; "
    "isErasureCoded=false})"
)


class Status:
    """One file as Hadoop's objects tell it."""

    def __init__(self, uri: str, size: int) -> None:
        self._uri, self._size = uri, size

    def getPath(self) -> Status:
        return self

    def toUri(self) -> Status:
        return self

    def toString(self) -> str:
        return self._uri

    def getLen(self) -> int:
        return self._size

    def getModificationTime(self) -> int:
        return 7

    def isDirectory(self) -> bool:
        return False

    def isSymlink(self) -> bool:
        return False


@pytest.mark.parametrize("text", [VIEW, VIEW.replace("path=null", "path=file:/disk/t/p=a b/x.parquet")])
def test_where_the_text_names_other_paths_each_file_is_asked(text: str) -> None:
    status = Status("viewfs://c/t/p=a%20b/x.parquet", 12)
    jvm = SimpleNamespace(path=lambda uri: uri, text_of_array=lambda statuses: text)
    files = HadoopFiles(cast("Any", jvm), SimpleNamespace(listStatus=lambda path: [status]))
    assert files.children("viewfs://c/t/p=a%20b") == {
        "viewfs://c/t/p=a%20b/x.parquet": StoredFile("viewfs://c/t/p=a%20b/x.parquet", 12, 7, False, False)
    }


class Bucket:
    """Hadoop's S3A on a bucket that keeps versions of objects and refuses to delete one; it plays the JVM as well."""

    def __init__(self, page_size: int) -> None:
        self.versions: dict[str, list[tuple[str, bool]]] = {}
        self.pages: list[list[str]] = []
        self.closed = 0
        self.has_other_classes = False
        self.num_refused = 0
        self._page_size = page_size

    def path(self, uri: str) -> str:
        return uri

    def makeQualified(self, path: str) -> str:
        return path

    def createBulkDelete(self, path: str) -> Bucket:
        return self

    def pageSize(self) -> int:
        return self._page_size

    def close(self) -> None:
        self.closed += 1

    def require_s3_client(self, _: object) -> None:
        if self.has_other_classes:
            raise TypeError("no such class")

    def _refuse(self) -> None:
        if self.num_refused > 0:
            self.num_refused -= 1
            raise OSError("Please reduce your request rate. (Service: S3, Status Code: 503, Request ID: null)")

    def delete_objects(self, _: object, versions: dict[str, str | None]) -> tuple[dict[str, str], dict[str, str]]:
        self._refuse()
        self.pages.append(list(versions))
        made = {}
        for key, version in versions.items():
            kept = self.versions.setdefault(key, [("v0", False)])
            if version is not None:
                kept[:] = [each for each in kept if each[0] != version]
            elif key != "t/kept":
                made[key] = f"m{len(kept)}"
                kept.insert(0, (made[key], True))
        return {key: "AccessDenied: no" for key in versions if key == "t/kept"}, made

    def object_versions(
        self, _: object, prefix: str, after: str
    ) -> tuple[dict[str, list[tuple[str, bool, bool]]], bool]:
        self._refuse()
        listed = [
            (key, (version, is_marker, number == 0))
            for key in sorted(self.versions)
            if key.startswith(prefix) and key > after
            for number, (version, is_marker) in enumerate(self.versions[key])
        ]
        page: dict[str, list[tuple[str, bool, bool]]] = {}
        for key, version in listed[: self._page_size]:
            page.setdefault(key, []).append(version)
        return page, len(listed) > self._page_size


def files_of(bucket: Bucket) -> HadoopFiles:
    return HadoopFiles(cast("Any", bucket), bucket)


def test_many_files_are_deleted_page_by_page_and_what_stays_is_named() -> None:
    bucket, before = Bucket(2), REQUEST_COUNT.so_far
    uris = [*(f"s3a://lake/t/a%20{number}" for number in range(4)), "s3a://lake/t/kept"]
    done = files_of(bucket).delete_many(uris)
    assert done == DeletedMany({uris[4]: "AccessDenied: no"}, dict.fromkeys(uris[:4], "m1"))
    assert REQUEST_COUNT.so_far - before == StoreRequests(deletions=3)
    assert (bucket.pages, bucket.closed) == ([["t/a 0", "t/a 1"], ["t/a 2", "t/a 3"], ["t/kept"]], 1)


def test_a_store_that_is_busy_is_asked_again_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_pace, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(hadoop_files, "_PACE", StorePace(2, 0.2))
    bucket, before = Bucket(1000), REQUEST_COUNT.so_far
    uris = [f"s3a://lake/t/{number}" for number in range(3)]
    bucket.num_refused = 2
    assert files_of(bucket).delete_many(uris) == DeletedMany({}, dict.fromkeys(uris, "m1"))
    bucket.num_refused = 1
    assert files_of(bucket).hiding(uris) == dict.fromkeys(uris, "m1")
    assert REQUEST_COUNT.so_far - before == StoreRequests(deletions=3, lists=2)
    bucket.num_refused = 1_000_000
    with pytest.raises(OSError, match="Please reduce your request rate"):
        files_of(bucket).delete_many(uris)
    assert len(bucket.pages) == 1


def test_where_each_file_is_a_request_or_hadoop_is_older_files_go_one_by_one() -> None:
    one_by_one = Bucket(1)
    assert (files_of(one_by_one).delete_many(["s3a://lake/t/a"]), one_by_one.pages, one_by_one.closed) == (None, [], 1)
    shaded = Bucket(1000)
    shaded.has_other_classes = True
    assert (files_of(shaded).delete_many(["s3a://lake/t/a"]), shaded.pages) == (None, [])
    older = HadoopFiles(cast("Any", one_by_one), SimpleNamespace(makeQualified=str))
    assert older.delete_many(["s3a://lake/t/a"]) is None


@pytest.mark.parametrize(
    ("versions", "stays"),
    [
        ([("m1", True), ("v0", False)], None),
        ([("m1", True), ("m0", True), ("v0", False)], None),
        ([("v2", False), ("m1", True), ("v0", False)], "something newer is in its place"),
        ([("m2", True), ("m1", True), ("v0", False)], "something newer is in its place"),
        ([("m2", True), ("v0", False)], "its delete marker is gone"),
        ([("v0", False)], "its delete marker is gone"),
        ([("m1", True)], "the bucket has no version of it any more"),
        ([("m1", False), ("v0", False)], "something newer is in its place"),
    ],
)
def test_a_delete_marker_goes_only_while_it_is_the_newest_version(
    versions: list[tuple[str, bool]], stays: str | None
) -> None:
    bucket, uri = Bucket(1000), "s3a://lake/t/p%3D1/a"
    bucket.versions["t/p=1/a"] = list(versions)
    assert files_of(bucket).uncover({uri: "m1"}) == ({} if stays is None else {uri: stays})
    assert bucket.versions["t/p=1/a"] == (versions[1:] if stays is None else versions)
    assert bucket.pages == ([["t/p=1/a"]] if stays is None else [])


def test_of_a_file_the_delete_marker_that_hides_it_is_found_and_nothing_where_nobody_may_ask() -> None:
    bucket, uri = Bucket(1000), "s3a://lake/t/p%3D1/a"
    for versions, found in (
        ([("m1", True), ("v0", False)], {uri: "m1"}),
        ([("v1", False), ("m1", True)], {}),
        ([], {}),
    ):
        bucket.versions["t/p=1/a"] = list(versions)
        before = REQUEST_COUNT.so_far
        assert files_of(bucket).hiding([uri]) == found
        assert REQUEST_COUNT.so_far - before == StoreRequests(lists=1)
    shaded = Bucket(1000)
    shaded.versions = cast("Any", None)
    assert files_of(shaded).hiding([uri]) == {}


@pytest.mark.parametrize(("page_size", "most"), [(1000, 8), (7, 800), (2, 800)])
def test_many_delete_markers_are_listed_by_pages_among_other_files(page_size: int, most: int) -> None:
    """Each third file was deleted; one has more versions than a page, and names begin like others."""
    bucket = Bucket(page_size)
    names = [f"t/p={number % 2}/{number}" for number in range(1, 1201)]
    bucket.versions = {name: [("v0", False)] for name in (*names, "t/p=1", "u/9")}
    wanted = dict.fromkeys(names[::3], "m1")
    for name in wanted:
        bucket.versions[name].insert(0, ("m1", True))
    bucket.versions[names[3]] += [(f"old{number}", False) for number in range(1500)]
    uris = {f"s3a://lake/{quote(name)}": marker for name, marker in wanted.items()}
    before = REQUEST_COUNT.so_far
    assert files_of(bucket).hiding(uris) == uris
    assert (REQUEST_COUNT.so_far - before).lists <= most
    assert files_of(bucket).uncover(uris) == {}
    assert all(bucket.versions[name][0] == ("v0", False) for name in names)
    assert sorted(key for page in bucket.pages for key in page) == sorted(wanted)
    assert files_of(bucket).uncover(uris) == dict.fromkeys(uris, "its delete marker is gone")


def test_the_local_disk(tmp_path: Path) -> None:
    files, root = LocalFiles(), f"file:{tmp_path}"
    (tmp_path / "a b").write_bytes(b"12345")
    (tmp_path / ".a b.crc").write_bytes(b"crc")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("a b")
    children = files.children(root)
    assert {status.name: (status.size_bytes, status.is_dir, status.is_symlink) for status in children.values()} == {
        "a b": (5, False, False),
        ".a b.crc": (3, False, False),
        "folder": (0, True, False),
        "link": (3, False, True),
    }
    assert files.status(f"{root}/a%20b") == children[f"{root}/a%20b"]
    assert files.status(f"{root}/none") is None
    assert files.children(f"{root}/none") == {}
    assert files.children(f"{root}/a%20b") == {}
    files.write(f"{root}/new/x", b"1")
    with pytest.raises(FileExistsError):
        files.write(f"{root}/new/x", b"2")
    with pytest.raises(FileExistsError):
        files.move(f"{root}/a%20b", f"{root}/new/x")
    with pytest.raises(FileNotFoundError):
        files.move(f"{root}/none", f"{root}/y")
    files.move(f"{root}/a%20b", f"{root}/deep/er/y")
    assert files.read(f"{root}/deep/er/y") == b"12345"
    assert not os.path.exists(tmp_path / ".a b.crc")
    files.replace(f"{root}/new/x", b"22")
    files.replace(f"{root}/new/y", b"3")
    assert (files.read(f"{root}/new/x"), files.read(f"{root}/new/y")) == (b"22", b"3")
    assert files.delete(f"{root}/new/y")
    assert files.delete(f"{root}/new/x")
    assert not files.delete(f"{root}/new/x")
    assert files.delete(f"{root}/new")
    with pytest.raises(OSError, match="not empty"):
        files.delete(f"{root}/deep")
    assert files.delete(f"{root}/link")
    assert (tmp_path / "deep" / "er" / "y").exists()


@pytest.mark.parametrize(
    ("spelling", "other"),
    [
        ("s3://b/t/x", "s3a://b/t/x"),
        ("s3n://b/t/x", "S3A://b/t/x"),
        ("abfss://c@a/x", "abfs://c@a/x"),
        ("file:///none/x", "file:/none/x"),
        ("/none/x", "file:/none/x"),
        ("file:/none/a%20b", "file:/none/a b"),
    ],
)
def test_two_spellings_of_one_place(spelling: str, other: str) -> None:
    assert canonical_uri(spelling) == canonical_uri(other)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('"a"', '"a"', True), ('"a"', '"b"', False), ('"a"', "", True), ("", "", True),
        ('"a"\n3', '"a"', True), ("a", '"a"', True), ('"a"\n3', '"b"\n3', False),
    ],
)  # fmt: skip
def test_a_tag_tells_two_files_apart_where_both_have_one(one: str, other: str, same: bool) -> None:
    """A listing has no version where a look has one, and some servers leave the quotes out."""
    first, second = (StoredFile("s3a://b/x", 1, 2, False, False, tag=tag) for tag in (one, other))
    assert (first == second, hash(first) == hash(second)) == (same, True)
    assert first != StoredFile("s3a://b/x", 1, 1002, False, False, tag=one)
    assert first != "s3a://b/x"


@pytest.mark.parametrize("tag", ['"a"', ""])
def test_the_time_of_a_look_has_whole_seconds_and_that_of_a_listing_more(tag: str) -> None:
    """MinIO and Google. Who writes the same content anew a second later is told from who did not."""
    listed, looked, anew = (StoredFile("gs://b/x", 1, ms, False, False, tag=tag) for ms in (1999, 1000, 2000))
    assert (listed == looked, hash(listed) == hash(looked)) == (tag != "", True)
    assert anew not in (listed, looked)
