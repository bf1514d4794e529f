"""What a store does to its clients, and what is made of it: one contract for files of a store that is not well.

The server is a real one, and the faults are on the way to it. Hadoop is a class here that says when it was asked: what
it would say is another client's answer.
"""

from __future__ import annotations

import gzip
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from maintainer.delta.storage.file_store import StoredFile, TransferError, java_quote
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.delta.storage.object_files import Bucket, ObjectFiles
from maintainer.engine.store import object_storage
from maintainer.engine.store.cloud_settings import store_settings
from maintainer.engine.store.object_storage import ObjectStorage
from maintainer.engine.store.store_clients import OF_TABLES
from tests.support.stores.s3_server import S3Server, spark_keys
from tests.support.stores.sick_store import ALWAYS, Fault, FaultRule

ROOT = "s3a://lake/t"
CONFLICT = ("409 Conflict", "ConditionalRequestConflict", "A conflicting operation occurred")
EXPIRED = ("400 Bad Request", "ExpiredToken", "The provided token has expired.")
FORBIDDEN = ("403 Forbidden", "AccessDenied", "Access Denied")
COLD = ("403 Forbidden", "InvalidObjectState", "The operation is not valid for the object's storage class")


class Hadoop(LocalFiles):
    """Answers as Hadoop would, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def read(self, uri: str, *, first_bytes: int | None = None) -> bytes:
        self.asked.append(uri)
        return b"of Hadoop"

    def read_end(self, file: StoredFile, last_bytes: int) -> bytes:
        self.asked.append(file.uri)
        return b"of Hadoop"

    def status(self, uri: str) -> StoredFile | None:
        self.asked.append(uri)
        raise PermissionError(uri)

    def write(self, uri: str, data: bytes) -> None:
        self.asked.append(uri)

    replace = write


@pytest.fixture
def hadoop() -> Hadoop:
    return Hadoop()


@pytest.fixture
def files(server: S3Server, hadoop: Hadoop, request: pytest.FixtureRequest) -> ObjectFiles:
    settings = store_settings("s3a://lake", spark_keys(server), {})
    return ObjectFiles("s3a://lake", Bucket(ObjectStorage.open("s3a://lake", settings, OF_TABLES)), lambda: hadoop)


@pytest.fixture
def place(request: pytest.FixtureRequest) -> str:
    """A folder of the test's own."""
    return f"{ROOT}/{java_quote(request.node.name)}"


def sick(
    server: S3Server, fault: Fault, method: str, *, times: int = 1, answer: tuple[str, str, str] = FORBIDDEN
) -> FaultRule:
    return server.faults.add(FaultRule(fault, method, "/lake/", times=times, answer=answer))


def test_a_name_that_another_request_is_about_to_create_is_tried_again(
    files: ObjectFiles, server: S3Server, place: str, tmp_path: Path
) -> None:
    """409: neither is there an object, nor was one made. obstore says that there is one."""
    (tmp_path / "f").write_bytes(b"rows")
    sick(server, Fault.REFUSES, "PUT", answer=CONFLICT)
    files.write(f"{place}/a", b"text")
    sick(server, Fault.REFUSES, "PUT", answer=CONFLICT)
    files.upload(str(tmp_path / "f"), f"{place}/b")
    assert (files.read(f"{place}/a"), files.read(f"{place}/b")) == (b"text", b"rows")


def test_a_name_that_stays_refused_is_an_error_and_no_file(
    files: ObjectFiles, server: S3Server, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_storage, "CONFLICT_PAUSES_SECONDS", (0.0, 0.0))
    rule = sick(server, Fault.REFUSES, "PUT", times=ALWAYS, answer=CONFLICT)
    with pytest.raises(FileExistsError):
        files.write(f"{place}/a", b"text")
    assert rule.num_met == 3


def test_a_409_about_anothers_file_is_that_file(files: ObjectFiles, server: S3Server, place: str) -> None:
    files.write(f"{place}/a", b"first")
    rule = sick(server, Fault.REFUSES, "PUT", answer=CONFLICT)
    with pytest.raises(FileExistsError):
        files.write(f"{place}/a", b"second")
    assert (rule.num_met, files.read(f"{place}/a")) == (1, b"first")


@pytest.mark.parametrize("fault", [Fault.LOST_ANSWER, Fault.LOST_REQUEST, Fault.SLOW_DOWN, Fault.FAILS])
def test_a_file_whose_first_try_fails_is_written_once(
    files: ObjectFiles, server: S3Server, place: str, fault: Fault
) -> None:
    sick(server, fault, "PUT")
    files.write(f"{place}/a", b"text")
    assert files.read(f"{place}/a") == b"text"
    sick(server, fault, "PUT")
    with pytest.raises(FileExistsError):
        files.write(f"{place}/a", b"another")
    assert files.read(f"{place}/a") == b"text"


def test_of_many_writers_of_one_name_one_wins(files: ObjectFiles, place: str) -> None:
    def won(number: int) -> int | None:
        try:
            files.write(f"{place}/a", b"%d" % number)
        except FileExistsError:
            return None
        return number

    with ThreadPoolExecutor(8) as pool:
        [winner] = [number for number in pool.map(won, range(8)) if number is not None]
    assert files.read(f"{place}/a") == b"%d" % winner


@pytest.mark.parametrize("answer", [FORBIDDEN, EXPIRED, COLD], ids=["no right to list", "token that ended", "archived"])
def test_what_is_refused_is_asked_through_hadoop_and_never_missing(
    files: ObjectFiles, server: S3Server, hadoop: Hadoop, place: str, answer: tuple[str, str, str]
) -> None:
    """Without the right to list, S3 says 403 of a name that is not there; only Hadoop renews its token."""
    sick(server, Fault.REFUSES, "*", times=ALWAYS, answer=answer)
    with pytest.raises(PermissionError):
        files.status(f"{place}/a")
    assert files.read(f"{place}/a") == b"of Hadoop"
    with pytest.raises(TransferError):
        files.download(f"{place}/a", "/dev/null")
    assert hadoop.asked == [f"{place}/a"] * 2
    server.faults.clear()
    files.write(f"{place}/a", b"text")
    assert files.read(f"{place}/a") == b"text", "the next request goes to the store again"


def test_what_may_not_be_written_is_written_through_hadoop(
    files: ObjectFiles, server: S3Server, hadoop: Hadoop, place: str
) -> None:
    rule = sick(server, Fault.REFUSES, "PUT", times=ALWAYS)
    files.write(f"{place}/a", b"text")
    files.replace(f"{place}/b", b"text")
    assert (rule.num_met, hadoop.asked) == (2, [f"{place}/a", f"{place}/b"])
    files._bucket.through_hadoop = True
    files.replace(f"{place}/b", b"text")
    assert (rule.num_met, hadoop.asked[2:]) == (2, [f"{place}/b"])


def test_a_body_that_is_shorter_than_the_listing_says_is_not_used(
    files: ObjectFiles, server: S3Server, hadoop: Hadoop, place: str
) -> None:
    files.write(f"{place}/a", b'{"add": {}}\n{"remove": {}}\n')
    [file] = files.children(place).values()
    sick(server, Fault.SHORTENS, "GET")
    assert list(files.read_many([file])) == [b"of Hadoop"]
    assert list(files.read_many([file])) == [b'{"add": {}}\n{"remove": {}}\n'], "and not kept"
    assert hadoop.asked == [f"{place}/a"]


def test_a_body_that_is_unpacked_on_its_way_is_not_used(
    files: ObjectFiles, server: S3Server, hadoop: Hadoop, place: str
) -> None:
    """Google unpacks what has `Content-Encoding: gzip`: the listing has the bytes as they are stored."""
    packed = gzip.compress(b'{"add": {}}\n' * 100)
    files.write(f"{place}/a", packed)
    [file] = files.children(place).values()
    sick(server, Fault.UNPACKS, "GET")
    assert list(files.read_many([file])) == [b"of Hadoop"]


def test_an_end_is_not_taken_from_a_whole_body(
    files: ObjectFiles, server: S3Server, hadoop: Hadoop, place: str
) -> None:
    files.write(f"{place}/a", b"0123456789")
    [file] = files.children(place).values()
    sick(server, Fault.FORGETS_RANGE, "GET", times=2)
    assert files.read_end(file, 4) == b"of Hadoop"
    assert files.read(f"{place}/a", first_bytes=4) == b"of Hadoop"
    assert (files.read_end(file, 4), files.read(f"{place}/a", first_bytes=4)) == (b"6789", b"0123")


def test_an_object_that_marks_a_folder_is_no_file(files: ObjectFiles, server: S3Server, place: str) -> None:
    """As the console of Amazon makes one: an empty object whose name ends with a slash."""
    files.write(f"{place}/p=1/f", b"rows")
    folder = place.removeprefix("s3a://lake/")
    for marker in ("", "p%3D1/"):
        server.put(f"/lake/{folder}/{marker}", b"")
    assert {uri: file.is_dir for uri, file in files.children(place).items()} == {f"{place}/p=1": True}
    assert {uri: file.is_dir for uri, file in files.children(f"{place}/p=1").items()} == {f"{place}/p=1/f": False}
    folders = [place, f"{place}/p=1"]
    assert files.children_of(folders) == {folder: files.children(folder) for folder in folders}
