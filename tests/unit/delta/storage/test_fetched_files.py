"""Files of a store as copies on this machine: whole, checked, and put back only as what was written."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections import namedtuple
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from maintainer.delta.storage import fetched_files
from maintainer.delta.storage.fetched_files import OTHER_TAGS, Fetched, ScratchRoom, TagTrust
from maintainer.delta.storage.file_store import StoredFile, TransferError
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.errors import CommitNotLanded

ROOT = "s3a://lake/t"


class Store:
    """A store in memory. ``tag_of`` makes the tag of an object; ``spoil`` changes what is stored or read."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.downloads: list[str] = []
        self.tag_of: Callable[[bytes], str] = lambda data: f'"{hashlib.md5(data).hexdigest()}"\n'
        self.spoil_upload: Callable[[bytes], bytes] = lambda data: data
        self.spoil_download: Callable[[bytes], bytes] = lambda data: data

    def download(self, uri: str, path: str) -> tuple[int, str, str]:
        self.downloads.append(uri)
        if uri not in self.objects:
            raise TransferError(f"{uri} is not there")
        data = self.spoil_download(self.objects[uri])
        Path(path).write_bytes(data)
        return len(data), hashlib.md5(data).hexdigest(), self.tag_of(self.objects[uri])

    def upload(self, path: str, uri: str) -> str:
        self.objects[uri] = self.spoil_upload(Path(path).read_bytes())
        return self.tag_of(self.objects[uri])

    def abreast(self, ask: Callable[[Any], Any], questions: Collection[Any]) -> list[Any]:
        return [ask(question) for question in questions]

    def status(self, uri: str) -> StoredFile | None:
        data = self.objects.get(uri)
        return None if data is None else StoredFile(uri, len(data), 77, False, False)


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def here(store: Store) -> Iterator[Fetched]:
    fetched = Fetched(store, TagTrust())
    yield fetched
    fetched.close()


def test_files_are_fetched_once_and_removed_at_the_end(store: Store, here: Fetched) -> None:
    uris = {f"{ROOT}/p={number}/f.parquet": bytes([number]) * 10 for number in range(20)}
    store.objects |= uris
    for _ in range(2):
        here.fetch(dict.fromkeys(uris, 10))
    assert {uri: Path(here.path(uri)).read_bytes() for uri in uris} == uris
    assert sorted(store.downloads) == sorted(uris)
    folder = os.path.dirname(here.path(next(iter(uris))))
    here.close()
    assert not os.path.exists(folder)


def test_a_file_of_another_length_than_the_log_says_is_not_used(store: Store, here: Fetched) -> None:
    store.objects[f"{ROOT}/f"] = b"short"
    with pytest.raises(TransferError, match="has 5 bytes, and the log says 6"):
        here.fetch({f"{ROOT}/f": 6})
    assert not os.path.exists(here.path(f"{ROOT}/f"))
    with pytest.raises(TransferError, match="is not there"):
        here.fetch({f"{ROOT}/gone": 6})


def test_a_body_that_changes_on_its_way_is_not_used(store: Store, here: Fetched) -> None:
    store.objects[f"{ROOT}/f"] = b"right"
    spoilt = iter((b"wrong", b"right"))
    store.spoil_download = lambda data: next(spoilt)
    with pytest.raises(TransferError, match="twice with different bytes"):
        here.fetch({f"{ROOT}/f": 5})


def test_tags_that_are_no_checksums_cost_one_more_read_and_then_none(store: Store, here: Fetched) -> None:
    """As where a key service encrypts: the tag looks like an MD5, and is none."""
    store.tag_of = lambda data: '"' + "0" * 32 + '"'
    for name in ("f", "g"):
        store.objects[f"{ROOT}/{name}"] = b"rows"
        here.fetch({f"{ROOT}/{name}": 4})
    assert store.downloads == [f"{ROOT}/f", f"{ROOT}/f", f"{ROOT}/g"]


def test_another_tag_of_one_object_says_nothing_of_the_others(store: Store, here: Fetched) -> None:
    """Where tags are MD5s, what is altered on its way is noticed also after something was altered twice alike."""
    right = store.tag_of
    for number in range(OTHER_TAGS):
        assert here.trust.is_md5
        store.objects[f"{ROOT}/{number}"], store.objects[f"{ROOT}/other {number}"] = b"rows", b"else"
        store.tag_of = right
        here.fetch({f"{ROOT}/{number}": 4})
        store.tag_of = lambda data: '"' + "0" * 32 + '"'
        here.fetch({f"{ROOT}/other {number}": 4})
    assert not here.trust.is_md5, "keys of a service encrypt what is written since"
    assert len(store.downloads) == 3 * OTHER_TAGS


def test_too_little_space_is_seen_before_anything_is_fetched(
    store: Store, here: Fetched, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(19))
    with pytest.raises(TransferError, match=r"20 B are needed in .*maintainer-.*19 B are free"):
        here.fetch({f"{ROOT}/f": 10})
    assert store.downloads == []


def test_the_room_is_shared_by_all_tables_and_given_back(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetched_files, "SCRATCH_ROOM", ScratchRoom(most_bytes=50))
    store.objects |= {f"{ROOT}/{name}": b"0123456789" for name in "abc"}
    first, second = Fetched(store, TagTrust()), Fetched(store, TagTrust())
    first.fetch({f"{ROOT}/a": 10, f"{ROOT}/b": 10})
    with pytest.raises(TransferError, match=r"other bins take 40 B of 50 B"):
        second.fetch({f"{ROOT}/c": 10})
    first.close()
    second.fetch({f"{ROOT}/c": 10})
    second.close()
    second.close()
    assert ScratchRoom(most_bytes=50) == fetched_files.SCRATCH_ROOM


@pytest.mark.parametrize("most_bytes", [80, None])
def test_processes_that_share_the_room_take_a_part_of_it_each(
    store: Store, here: Fetched, monkeypatch: pytest.MonkeyPatch, most_bytes: int | None
) -> None:
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(160))
    monkeypatch.setattr(fetched_files, "SCRATCH_ROOM", ScratchRoom(most_bytes, shares=4))
    store.objects |= {f"{ROOT}/{name}": b"0123456789" for name in "ab"}
    here.fetch({f"{ROOT}/a": 10})
    with pytest.raises(TransferError, match=r"other bins take 20 B of 2"):
        here.fetch({f"{ROOT}/b": 10})
    here.close()


def test_half_of_what_is_free_is_the_room_where_nobody_says(
    store: Store, here: Fetched, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(39))
    with pytest.raises(TransferError, match="20 B are needed"):
        here.fetch({f"{ROOT}/f": 10})


def test_a_scratch_folder_that_fills_up_is_said_to_be_that(store: Store, here: Fetched) -> None:
    def full(data: bytes) -> bytes:
        raise OSError(28, "No space left on device")

    store.objects[f"{ROOT}/f"] = b"rows"
    store.spoil_download = full
    with pytest.raises(TransferError, match=r"maintainer-.*: No space left on device"):
        here.fetch({f"{ROOT}/f": 4})


def write(here: Fetched, data: bytes) -> str:
    Path(here.path(f"{ROOT}/new")).write_bytes(data)
    return f"{ROOT}/new"


@pytest.mark.parametrize(("tag", "reads"), [("md5", 0), ("etag-of-parts-2", 1), ("", 1)])
def test_a_new_file_counts_when_the_store_names_its_checksum_or_reads_it_back(
    store: Store, here: Fetched, tag: str, reads: int
) -> None:
    if tag != "md5":
        store.tag_of = lambda data: tag
    stored = here.publish(write(here, b"rows"))
    assert (stored.size_bytes, stored.modification_time_ms, store.objects[f"{ROOT}/new"]) == (4, 77, b"rows")
    assert len(store.downloads) == reads


def test_only_a_tag_that_looks_like_a_checksum_and_is_none_ends_the_trust_in_tags(store: Store, here: Fetched) -> None:
    for tag, is_md5 in (("", True), ("etag-of-parts-2", True), (f'"{"0" * 32}"', False)):
        store.tag_of = lambda data, tag=tag: tag  # type: ignore[misc]
        here.publish(write(here, b"rows"))
        assert here.trust.is_md5 is is_md5


@pytest.mark.parametrize("spoilt", [b"row", b"rowS", b""])
def test_a_new_file_that_the_store_holds_otherwise_is_refused(store: Store, here: Fetched, spoilt: bytes) -> None:
    store.spoil_upload = lambda data: spoilt
    with pytest.raises(CommitNotLanded) as raised:
        here.publish(write(here, b"rows"))
    assert (raised.value.code, raised.value.where) == ("C702", f"{ROOT}/new")


@pytest.mark.parametrize(("held", "found"), [(b"row", "it has 3 bytes"), (None, "it is not there")])
def test_a_new_file_whose_tag_was_right_and_that_is_shorter_or_gone_is_refused(
    store: Store, here: Fetched, held: bytes | None, found: str
) -> None:
    def tag_of(data: bytes) -> str:
        if held is None:
            store.objects.clear()
        return f'"{hashlib.md5(b"rows").hexdigest()}"'

    store.tag_of, store.spoil_upload = tag_of, lambda data: held or data
    with pytest.raises(CommitNotLanded) as raised:
        here.publish(write(here, b"rows"))
    assert raised.value.found == f"4 bytes were written, and {found}"


def test_on_a_disk_nothing_is_copied(tmp_path: Path) -> None:
    (tmp_path / "a b").write_bytes(b"rows")
    here = LocalFiles().here()
    assert here is not None
    uri = f"file:{tmp_path}/a%20b"
    here.fetch({uri: 99})
    assert (here.path(uri), here.publish(uri).size_bytes) == (str(tmp_path / "a b"), 4)
    here.close()
    assert (tmp_path / "a b").exists()
