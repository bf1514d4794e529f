"""What is kept of versions already read: how much, what goes first, and when it does not count any more."""

from __future__ import annotations

from pathlib import Path

from maintainer.delta.storage.table_storage import KnownVersion, KnownVersions
from tests.support.tables.local_vacuum import LocalTable


def version(files: int) -> KnownVersion[str]:
    return KnownVersion("read", 0, None, files)


def test_the_least_recently_used_goes_first() -> None:
    known = KnownVersions[str](max_files=10, max_versions=3)
    for name in "abc":
        known.keep(name, version(2))
    assert known.kept("a") is not None
    known.keep("d", version(2))
    assert [name for name in "abcd" if known.kept(name)] == ["a", "c", "d"]
    assert (len(known), known.num_files) == (3, 6)
    known.keep("e", version(8))
    assert [name for name in "abcde" if known.kept(name)] == ["d", "e"]
    assert known.num_files == 10


def test_a_version_with_more_files_than_are_kept_is_not_kept_and_drops_nothing_else() -> None:
    known = KnownVersions[str](max_files=3, max_versions=3)
    known.keep("a", version(2))
    known.keep("b", version(2))
    known.keep("b", version(4))
    assert (known.kept("a"), known.kept("b"), known.num_files) == (None, None, 0)


def test_a_version_counts_while_its_commit_file_is_the_same(tmp_path: Path) -> None:
    table, known = LocalTable(tmp_path), KnownVersions[str](10, 10)
    commit = tmp_path / "_delta_log" / f"{0:020}.json"
    commit.parent.mkdir()
    commit.write_text("{}")
    read = KnownVersion("read", 0, table.status(table.commit_uri(0)), 1)
    known.keep("t", read)
    assert known.get("t", table) is read
    commit.write_text("{ }")
    assert (known.get("t", table), known.kept("t"), known.num_files) == (None, None, 0)
