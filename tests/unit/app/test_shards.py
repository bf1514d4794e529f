"""Shards: every table is in exactly one, whatever else is in the fleet, and the option is read strictly."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maintainer.app.selection.table_selection import Shard
from maintainer.cli.main import run


@given(st.lists(st.text(), max_size=40, unique=True), st.integers(1, 9))
def test_the_union_of_shards_is_the_whole_and_no_table_is_in_two(names: list[str], total: int) -> None:
    shards = [Shard(number, total) for number in range(1, total + 1)]
    assert all(sum(shard.holds(name) for shard in shards) == 1 for name in names)


def test_a_table_stays_where_it_is() -> None:
    """By a hash that no process seeds: two drivers must agree, today and next year."""
    assert sum(Shard(1, 4).holds(f"t{number}") for number in range(4000)) == 992


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "1/", "a/b", "1/1001", "-1/2", "01/2", "1/2/3", ""])
def test_what_is_not_a_shard_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a shard"):
        Shard.parse(text)


def test_list_shows_one_shard_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "maintainer.yml").write_text("version: 1\n")
    (tmp_path / "policies").mkdir()
    for number in range(12):
        (tmp_path / "policies" / f"{number}.yml").write_text(f"version: 1\ntable: db.t{number}\n")
    seen: list[str] = []
    for number in (1, 2, 3):
        assert run(["--project", str(tmp_path), "-q", "list", "--shard", f"{number}/3"]) == 0
        out = capsys.readouterr().out.splitlines()
        seen += [line.split()[0] for line in out if line.startswith("db.")]
    assert sorted(seen) == sorted(f"db.t{number}" for number in range(12))
    assert run(["--project", str(tmp_path), "list", "--shard", "4/3"]) == 2
    assert "`4/3` is not a shard" in capsys.readouterr().err
