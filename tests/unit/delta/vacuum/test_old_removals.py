"""The cheap answer to "is anything left?": never a no where a proper look finds something."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from maintainer.delta.log.replay.log_replay import replay
from maintainer.delta.storage.table_log import BriefActions, TableLog
from maintainer.delta.vacuum.tombstones import Expired, nothing_left, protected_uris, removed_paths
from maintainer.model.plan.reasons import ReasonCode
from maintainer.model.table.log_names import vector_path
from maintainer.model.table.table_facts import TableFacts, TableRecord
from maintainer.policy.resolve.resolved import Consumer
from tests.support.tables.aged_tables import AgedTable, touch
from tests.support.tables.local_vacuum import LocalTable, Vacuuming
from tests.support.tables.vacuum_cases import codes, old_table, policies, vacuum, write_checkpoint

UUID = "d2c639aa-8816-431a-aaf6-d3fe2512ff61"
TEXT = "^-aqEH.-t@S}K{vb[*k^"
"""A UUID and its text, from the protocol's own example."""


class RealVectorNames(LocalTable):
    """A local table whose deletion vectors are named as Delta names them."""

    def vector_uri(self, kind: str, path: str) -> str:
        """See ``TableStorage``."""
        return TableLog.vector_uri(self, kind, path)


class Plain(RealVectorNames):
    """The same, with absolute paths taken as they are."""

    def vector_uri(self, kind: str, path: str) -> str:
        """See ``TableStorage``."""
        return path if kind == "p" else super().vector_uri(kind, path)


def one_commit(table: AgedTable, text: str, days_ago: float = 20) -> None:
    """Write a commit's text as it is."""
    file = table.path / "_delta_log" / f"{table.head + 1:020}.json"
    file.write_text(text)
    touch(file, table.at(days_ago))


def facts_with(table: AgedTable, *live: str) -> TableFacts:
    """The table's facts as they are now, with just these files left live."""
    facts = Vacuuming(policies()).reader.facts(table.ref)
    return replace(facts, files=tuple(file for file in facts.files if file.path in live))


def answer(table: AgedTable, days_ago: float = 7) -> bool:
    work = Vacuuming(policies())
    return nothing_left(RealVectorNames(table.path), work.reader.facts(table.ref), table.at(days_ago))


class TestVectorNames:
    def test_the_example_of_the_protocol(self) -> None:
        assert vector_path("ab" + TEXT) == f"ab/deletion_vector_{UUID}.bin"
        assert vector_path(TEXT) == f"deletion_vector_{UUID}.bin"

    @pytest.mark.parametrize(
        "text", ["", "short", "a/b" + TEXT, "ä" + TEXT, "%" * 20, TEXT[:-1] + "ü", TEXT[:-1] + '"']
    )
    def test_what_is_not_of_the_protocols_form_is_left_to_delta(self, text: str) -> None:
        assert vector_path(text) is None


WRITTEN = {
    "as Delta writes it": '{"remove":{"path":"x.parquet","deletionTimestamp":1,"dataChange":true}}\n',
    "without a last line break": '{"remove":{"path":"x.parquet","deletionTimestamp":1,"dataChange":true}}',
    "spaced": '{ "remove" : { "path" : "x.parquet", "dataChange" : true } }\n',
    "another order": '{"remove":{"dataChange":true,"path":"x.parquet"}}\n',
    "escaped": '{"remove":{"path":"\\u0078.parquet","dataChange":true}}\n',
    "percent-encoded": '{"remove":{"path":"%78.parquet","dataChange":true}}\n',
    "change data": '{"cdc":{"path":"x.parquet","partitionValues":{},"size":1,"dataChange":false}}\n',
    "a column called remove": '{"remove":{"path":"x.parquet","partitionValues":{"remove":"1"},"dataChange":true}}\n',
    "after others": '{"commitInfo":{}}\n{"txn":{"appId":"a"}}\n{"remove":{"path":"x.parquet","dataChange":true}}\n',
}


class TestRemovedPaths:
    @pytest.mark.parametrize("how", WRITTEN)
    def test_a_removal_is_seen_however_it_is_written(self, lake: Path, how: str) -> None:
        table = AgedTable(lake / "t")
        table.append(60, "x.parquet", "live.parquet")
        facts, storage = facts_with(table, "live.parquet"), LocalTable(table.path)
        one_commit(table, WRITTEN[how])
        assert not nothing_left(storage, facts, table.at(7))
        (table.path / "x.parquet").unlink()
        assert nothing_left(storage, facts, table.at(7))

    @pytest.mark.parametrize("folder", ["", "ab"])
    @pytest.mark.parametrize("order", [("storageType", "pathOrInlineDv"), ("pathOrInlineDv", "storageType")])
    def test_the_file_of_a_deletion_vector(self, lake: Path, folder: str, order: tuple[str, str]) -> None:
        table = AgedTable(lake / "t")
        table.append(60, "x.parquet")
        vector = {"storageType": "u", "pathOrInlineDv": folder + TEXT, "offset": 1, "sizeInBytes": 6, "cardinality": 1}
        written = {key: vector[key] for key in order} | vector
        remove = {"path": "x.parquet", "deletionTimestamp": 1, "dataChange": True, "deletionVector": written}
        text = json.dumps({"remove": remove}, separators=(",", ":"))
        again = json.dumps(table.add_action("x.parquet", 60), separators=(",", ":"))
        one_commit(table, f"{text}\n{again}\n")
        assert answer(table)
        file = table.file(f"{folder}/deletion_vector_{UUID}.bin".lstrip("/"), 60, b"bits")
        assert not answer(table)
        file.unlink()
        assert answer(table)

    @pytest.mark.parametrize("odd", ["inline", "no offset", "outside", "one of several"])
    def test_vectors_that_are_written_in_another_way(self, lake: Path, odd: str) -> None:
        vectors: dict[str, dict[str, Any]] = {
            "inline": {"storageType": "i", "pathOrInlineDv": "abc", "sizeInBytes": 6, "cardinality": 1},
            "no offset": {"storageType": "u", "pathOrInlineDv": TEXT, "sizeInBytes": 6, "cardinality": 1},
            "outside": {"storageType": "p", "pathOrInlineDv": "file:/elsewhere/v.bin", "offset": 1},
            "one of several": {"storageType": "u", "pathOrInlineDv": TEXT, "offset": 1, "sizeInBytes": 6},
        }
        removes = [{"path": "x.parquet", "dataChange": True, "deletionVector": vectors[odd]}]
        removes += [{"path": f"{name}.parquet", "dataChange": True} for name in ("y", "z")] if odd[0] == "o" else []
        commit = "\n".join(json.dumps({"remove": remove}, separators=(",", ":")) for remove in removes).encode()
        expected = {str(remove["path"]) for remove in removes}
        if odd in ("no offset", "one of several"):
            expected.add(f"deletion_vector_{UUID}.bin")
        assert set(removed_paths(Plain(lake), BriefActions(commit))) == expected

    def test_paths_outside_the_table_are_nobodys(self, lake: Path) -> None:
        commit = b"\n".join(
            json.dumps({"remove": {"path": path}}, separators=(",", ":")).encode()
            for path in ("file:/elsewhere/a", "/elsewhere/b", "s3a://x/c", "here/d:e", "p=x:y/f")
        )
        assert list(removed_paths(LocalTable(lake), BriefActions(commit))) == ["here/d:e", "p=x:y/f"]

    @pytest.mark.parametrize("left", [0, 9])
    def test_one_of_many_in_a_folder_is_found(self, lake: Path, left: int) -> None:
        table = AgedTable(lake / "t")
        names = [f"p=ä 1/f{number}.parquet" for number in range(10)]
        table.append(60, "live.parquet", *names)
        table.delete(30, *names)
        for name in names:
            (table.path / name).unlink()
        assert answer(table)
        table.file(names[left], 60)
        assert not answer(table)

    def test_young_commits_are_not_read(self, lake: Path) -> None:
        table = AgedTable(lake / "t")
        table.append(60, "x.parquet")
        facts = facts_with(table, "x.parquet")
        one_commit(table, 'this is no JSON "remove"', days_ago=3)
        assert nothing_left(LocalTable(table.path), facts, table.at(7))

    def test_a_file_that_is_live_again_is_nothing(self, lake: Path) -> None:
        table = AgedTable(lake / "t")
        table.append(60, "p=ä b/x.parquet")
        table.delete(30, "p=ä b/x.parquet")
        assert not answer(table)
        table.commit(20, table.add_action("p=ä b/x.parquet", 60), operation="RESTORE")
        assert answer(table)


class TestAgainstAProperLook:
    @pytest.mark.parametrize("seed", range(40))
    def test_no_is_always_right_and_yes_is_not_for_nothing(self, lake: Path, seed: int) -> None:
        """Random histories, of which some removed files are gone: beside a replay of the whole log."""
        chance = random.Random(seed)
        table = AgedTable(lake / "t", created_days_ago=90)
        live: list[str] = []
        for number, days in enumerate(sorted((chance.uniform(0.5, 80) for _ in range(20)), reverse=True)):
            if len(live) < 3 or chance.random() < 0.5:
                live.append(f"p={number % 3}/f {number}.parquet")
                table.append(days, live[-1])
            else:
                taken = chance.sample(live, 2)
                table.rewrite(days, f"r{number}.parquet", *taken)
                live = [*(name for name in live if name not in taken), f"r{number}.parquet"]
        gone = chance.choice([0.0, 0.9, 1.0])
        for path in table.path.rglob("*.parquet"):
            if path.relative_to(table.path).as_posix() not in live and chance.random() < gone:
                path.unlink()
        storage, facts = LocalTable(table.path), Vacuuming(policies()).reader.facts(table.ref)
        before_ms = table.at(chance.choice([5, 7, 30]))
        log = replay(storage, facts.version)
        old = Expired(storage, log, protected_uris(storage, facts, log, before_ms), before_ms)
        assert nothing_left(storage, facts, before_ms) == (not storage.files.look_many(old))


class TestInPlanning:
    def test_a_checkpoint_that_cannot_be_read_is_told_though_nothing_is_left(self, lake: Path) -> None:
        table = AgedTable(lake / "t")
        table.append(60, "x.parquet")
        work = Vacuuming(policies(consumers=(Consumer("s", None, str(lake / "missing")),)))
        plan = work.plan(table)
        assert (plan.state, codes(plan)) == ("blocked", {ReasonCode.CANNOT_BE_SURE})

    def test_a_stream_that_is_behind_holds_nothing_up_where_nothing_is_left(self, lake: Path) -> None:
        table = AgedTable(lake / "t")
        table.append(60, "x.parquet")
        table.append(3, "y.parquet")
        folder = write_checkpoint(lake / "chk", table, 1)
        plan = Vacuuming(policies(consumers=(Consumer("s", None, str(folder)),))).plan(table)
        assert (plan.state, codes(plan)) == ("up_to_date", {ReasonCode.NOTHING_EXPIRED})

    def test_the_longest_write_counts_for_untracked_files_though_nothing_removed_is_left(self, lake: Path) -> None:
        table = AgedTable(lake / "t")
        table.append(80, "x.parquet")
        table.file("slow.parquet", 60)
        table.commit(40, table.add_action("slow.parquet", 60))  # twenty days: forty are kept
        table.file("younger.parquet", 39)
        table.file("older.parquet", 41)
        vacuum(lake, table, Vacuuming(policies(delete_untracked=True)), "older.parquet")


def test_what_an_unproven_rewrite_added_stays_for_its_proof(tmp_path: Path) -> None:
    """A later rewrite replaced it: without the file nobody could ever prove the one before."""
    table = old_table(tmp_path / "t")
    table.rewrite(15, "all.parquet", "ab.parquet", "b.parquet")
    unproven = Vacuuming(policies(), record=TableRecord(unproven_versions=(2,)))
    assert ReasonCode.UNPROVEN_REWRITE in codes(unproven.plan(table))
    vacuum(tmp_path, table, unproven, "b.parquet")
    vacuum(tmp_path, table, Vacuuming(policies()), "a.parquet", "ab.parquet")
