"""Updates of others as a log shows them, and the partitions that they met."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from maintainer.delta.log import table_updates
from maintainer.delta.log.actions import PartitionNames, data_file
from maintainer.delta.log.table_updates import MAX_UPDATES, read_updates
from maintainer.delta.storage.file_store import StoredFile
from maintainer.delta.storage.local_files import LocalFiles
from maintainer.delta.storage.table_log import TableLog
from maintainer.model.table.commit_records import CommitStamp
from maintainer.model.table.table_facts import TableFacts, Update
from tests.support.tables.builders import MINUTE_MS, NOW_MS, make_facts, make_file

DAYS = ("2026-11-20", "2026-11-21", "2026-11-22")
PLAIN = make_facts(files=[make_file("f0")], version=100)
BY_DAY = make_facts(
    files=[
        make_file(f"{day}-{country}", partition={"day": day, "country": country})
        for day in DAYS
        for country in ("DE", "A AND (b = c)", None)
    ],
    columns={"id": "long", "day": "date", "country": "string"},
    partitioned_by=("day", "country"),
    version=100,
)
STAMP = CommitStamp("run", "t/compact", 0, "digest").to_json()


class Log:
    """A log made line by line. Each commit is a minute after the one before it; the last is of now."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "_delta_log"
        self.folder.mkdir()
        self.commits: list[list[dict[str, Any]]] = []

    def commit(self, operation: str, *removed: dict[str, str | None] | None, **info: object) -> None:
        parameters = {key: info.pop(key) for key in list(info) if key in ("predicate", "mode", *_MORE)}
        head = {"commitInfo": {"operation": operation, "operationParameters": parameters, **info}}
        removes = [{"remove": {"path": f"f{i}", "partitionValues": values}} for i, values in enumerate(removed)]
        self.commits.append([head, *removes, {"add": {"path": "new", "partitionValues": {}}}])

    def updates(
        self, facts: TableFacts = PLAIN, *, minutes: float = 1e6, after_version: int = 1 << 40
    ) -> tuple[Update, ...]:
        for version, actions in enumerate(self.commits):
            at_ms = NOW_MS - (len(self.commits) - 1 - version) * MINUTE_MS
            actions[0]["commitInfo"].setdefault("timestamp", at_ms)
            path = self.folder / f"{version:020d}.json"
            path.write_text("".join(json.dumps(action) + "\n" for action in actions))
            os.utime(path, (at_ms / 1000, at_ms / 1000))
        since_ms = NOW_MS - int(minutes * MINUTE_MS)
        return read_updates(
            TableLog(LocalFiles(), f"file:{self.folder.parent}"), facts, since_ms=since_ms, after_version=after_version
        )


_MORE = ("isDynamicPartitionOverwrite", "notMatchedBySourcePredicates")


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def test_whatever_removes_files_counts_and_what_only_adds_does_not(log: Log) -> None:
    log.commit("WRITE", isBlindAppend=True)
    log.commit("STREAMING UPDATE", isBlindAppend=True)
    log.commit("WRITE", isBlindAppend=False)
    log.commit("DELETE", {})
    log.commit("MERGE", {})
    log.commit("Foreign operation", {})
    log.commit("OPTIMIZE", {})
    log.commit("OPTIMIZE", {}, userMetadata=STAMP)
    log.commit("VACUUM END")
    log.commit("SET TBLPROPERTIES")
    assert [(update.version, update.operation) for update in log.updates()] == [
        (6, "OPTIMIZE"), (5, "Foreign operation"), (4, "MERGE"), (3, "DELETE")
    ]  # fmt: skip


def test_a_long_log_is_listed_only_where_it_is_looked_at(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store answers with a thousand names at once: a log of 43,200 commits takes 44 requests for each whole list."""
    monkeypatch.setattr(table_updates, "MAX_COMMITS_LOOKED_AT", 3)
    for number in range(10):
        log.commit(f"DELETE {number}", {})
    listed: list[str] = []

    def children(files: LocalFiles, uri: str, *, after: str = "") -> dict[str, StoredFile]:
        found = on_disk(files, uri, after=after)
        listed.extend(file.name for file in found.values())
        return found

    on_disk = LocalFiles.children
    monkeypatch.setattr(LocalFiles, "children", children)
    newest_read = replace(PLAIN, version=8)  # one commit has come since
    assert [update.version for update in log.updates(newest_read)] == [9, 8, 7]
    assert sorted(listed) == [f"{version:020d}.json" for version in (6, 7, 8, 9)]


def test_older_ones_count_only_above_the_version_asked_for(log: Log) -> None:
    for _ in range(5):
        log.commit("DELETE", {})
    assert [update.version for update in log.updates(minutes=2)] == [4, 3, 2]
    assert [update.version for update in log.updates(minutes=2, after_version=0)] == [4, 3, 2, 1]
    assert [update.version for update in log.updates(minutes=-1, after_version=3)] == [4]


def test_a_writer_whose_clock_runs_ahead_makes_no_table_hot_for_long(log: Log) -> None:
    log.commit("DELETE", {}, timestamp=NOW_MS + 10**12)
    for _ in range(20):
        log.commit("WRITE", isBlindAppend=True)
    assert log.updates(minutes=10) == ()
    assert [update.at_ms for update in log.updates()] == [NOW_MS - 20 * MINUTE_MS]


def test_so_many_are_read_and_no_more(log: Log) -> None:
    for _ in range(MAX_UPDATES + 5):
        log.commit("DELETE", {})
    assert len(log.updates()) == MAX_UPDATES


def met(log: Log, operation: str, **info: object) -> set[str] | None:
    """The days that a commit met which removed a file of day 22 and country DE."""
    log.commit(operation, {"day": DAYS[2], "country": "DE"}, **info)
    (update,) = log.updates(BY_DAY)
    partitions = update.partitions
    return None if partitions is None else {" ".join(str(value) for _, value in partition) for partition in partitions}


ALL_OF_22 = {f"2026-11-22 {country}" for country in ("DE", "A AND (b = c)", None)}
ALL_OF_21_22 = ALL_OF_22 | {f"2026-11-21 {country}" for country in ("DE", "A AND (b = c)", None)}


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        # As Spark writes them: columns with a number, values without quotes.
        ('["((day#590 = 2026-11-22) AND (id#588L = 1))"]', ALL_OF_22),
        ('["(day#590 >= 2026-11-21)"]', ALL_OF_21_22),
        ('["(day#590 IN (2026-11-22,2026-11-21))"]', ALL_OF_21_22),
        ('["((day#590 > 2026-11-21) AND (country#591 = DE))"]', {"2026-11-22 DE"}),
        ('["(((day#1 >= 2026-11-21) AND (day#1 <= 2026-11-22)) AND ((id#2L = 1) OR (id#2L = 2)))"]', ALL_OF_21_22),
        ('["(id#1L = id#2L)", "(day#3 = 2026-11-22)"]', ALL_OF_22),
        # As replaceWhere and delta-rs write them.
        ("(day = DATE '2026-11-22')", ALL_OF_22),
        ("target.id = source.id AND target.day = '2026-11-22'", ALL_OF_22),
        ("day >= '2026-11-21'::date AND id = 2", ALL_OF_21_22),
        # What is not understood narrows nothing.
        ('["(country#1729 = A AND (b = c))"]', None),
        ('["((day#1728 = 2026-11-22) AND (country#1729 = A AND (b = c)))"]', ALL_OF_22),
        ('["((day#5781 = 2026-11-22) OR (id#5783 = 1))"]', None),
        ('["NOT (day#5781 = 2026-11-22)"]', None),
        ('["(day#5781 <=> 2026-11-22)"]', None),
        ('["((id#1L = id#2L) AND (day#3 = day#4))"]', None),
        ("target.id = source.id AND target.country = source_country", None),
        ('["(day#3 = cast(now() as date))"]', None),
        ('["(id#1L = 5)"]', None),
        ("[]", None),
        ("not json [", None),
    ],
)
def test_a_predicate_bounds_what_an_update_read(log: Log, predicate: str, expected: set[str] | None) -> None:
    assert met(log, "DELETE", predicate=predicate) == expected


def test_what_says_nothing_of_what_it_read_may_have_read_all(log: Log) -> None:
    assert met(log, "UPDATE") is None


def test_an_overwrite_reads_the_whole_table(log: Log) -> None:
    assert met(log, "WRITE", mode="Overwrite") is None


def test_an_overwrite_of_the_partitions_it_brings_reads_those(log: Log) -> None:
    assert met(log, "WRITE", mode="Overwrite", isDynamicPartitionOverwrite=True) == {"2026-11-22 DE"}


def test_maintenance_reads_what_it_replaces(log: Log) -> None:
    assert met(log, "OPTIMIZE", predicate="[]") == {"2026-11-22 DE"}


def test_a_merge_that_looks_for_rows_without_a_source_reads_all(log: Log) -> None:
    where = {"predicate": '["(day#1 = 2026-11-22)"]', "notMatchedBySourcePredicates": '[{"actionType":"delete"}]'}
    assert met(log, "MERGE", **where) is None


def test_a_removal_without_its_partition_may_be_of_any(log: Log) -> None:
    log.commit("DELETE", None, predicate='["(day#1 = 2026-11-22)"]')
    assert [update.partitions for update in log.updates(BY_DAY)] == [None]


def test_a_table_without_partitions_is_read_whole(log: Log) -> None:
    log.commit("DELETE", {}, predicate='["(id#1L = 5)"]')
    assert [update.partitions for update in log.updates(PLAIN)] == [None]


ZONELESS, INSTANT = "2020-05-05 00:00:00", "2020-05-05T00:00:00.000000Z"
IN_VILNIUS, DAYS_LATER = "2020-05-04T21:00:00.000000Z", "2020-05-08T00:00:00.000000Z"
EARLIER_ZONELESS = "2020-05-04 23:00:00"


def by_time(*texts: str, type_name: str = "timestamp") -> TableFacts:
    adds = [{"path": text, "partitionValues": {"ts": text}, "size": 1} for text in texts]
    schema = make_facts(columns={"id": "long", "ts": type_name}, partitioned_by=("ts",)).schema_json
    names = PartitionNames.of({"schemaString": schema, "partitionColumns": ["ts"]})
    files = [data_file(add, names) for add in adds]
    return make_facts(files=files, columns={"id": "long", "ts": type_name}, partitioned_by=("ts",), version=100)


def met_texts(log: Log, facts: TableFacts, removed: str, **info: object) -> set[str]:
    """The texts of the live files that the update met."""
    log.commit("OPTIMIZE" if "predicate" not in info else "DELETE", {"ts": removed}, **info)
    (update,) = log.updates(facts)
    return {file.path for file in facts.files if update.meets((file.partition_values,))}


@pytest.mark.parametrize(
    ("removed", "touched"),
    [
        # A text without a zone is any moment that some reader's zone makes of it; others are not.
        (ZONELESS, {ZONELESS, INSTANT, IN_VILNIUS}),
        (IN_VILNIUS, {ZONELESS, IN_VILNIUS, EARLIER_ZONELESS}),
        (DAYS_LATER, {DAYS_LATER}),
    ],
)
def test_a_text_that_is_two_moments_touches_both(log: Log, removed: str, touched: set[str]) -> None:
    facts = by_time(ZONELESS, INSTANT, IN_VILNIUS, DAYS_LATER, EARLIER_ZONELESS)
    # Two texts of one value in UTC are one partition for everything that protects.
    expected = touched | ({INSTANT} if ZONELESS in touched else set())
    assert met_texts(log, facts, removed) == expected


@pytest.mark.parametrize(
    ("type_name", "condition", "texts"),
    [
        ("long", "= 10", ("10", "1_0", "1\u0660", "11")),
        ("date", "= DATE '2026-11-22'", ("2026-11-22", "20261122", "2026-W47-7", "2026-11-21")),
    ],
)
def test_a_text_that_only_python_reads_may_fulfil_any_condition(
    log: Log, type_name: str, condition: str, texts: tuple[str, ...]
) -> None:
    facts = by_time(*texts, type_name=type_name)
    assert met_texts(log, facts, texts[0], predicate=f"ts {condition}") == set(texts[:-1])
    log.commits.clear()
    assert set(texts[1:-1]) < met_texts(log, facts, texts[-1], predicate=f"ts {condition.replace('=', '>')}")


AFTERNOON, NEXT_DAY = "2020-05-05T15:00:00.000001Z", "2020-05-06 00:00:00"


@pytest.mark.parametrize(
    ("condition", "read"),
    [
        ("= TIMESTAMP '2020-05-04 21:00:00'", {IN_VILNIUS}),
        ("= TIMESTAMP '2020-05-04T21:00:00Z'", {EARLIER_ZONELESS, IN_VILNIUS}),
        ("= TIMESTAMP '2020-05-05T10:00:00Z'", {EARLIER_ZONELESS, NEXT_DAY}),
        ("> TIMESTAMP '2020-05-05T16:00:00Z'", {EARLIER_ZONELESS, NEXT_DAY}),
        ("< TIMESTAMP '2020-05-04T06:00:00Z'", {EARLIER_ZONELESS}),
        ("<= TIMESTAMP '2020-05-04T05:00:00Z'", {EARLIER_ZONELESS}),
        ("< TIMESTAMP '2020-05-04T05:00:00Z'", set()),
    ],
)
def test_a_predicate_reads_whatever_its_time_may_be_to_its_reader(log: Log, condition: str, read: set[str]) -> None:
    facts = by_time(IN_VILNIUS, EARLIER_ZONELESS, NEXT_DAY, AFTERNOON)
    removed = "2030-01-01T00:00:00.000000Z"  # a file that went, and of which nothing is left
    log.commit("DELETE", {"ts": removed}, predicate=f"ts {condition}")
    (update,) = log.updates(facts)
    met = {file.path for file in facts.files if update.meets((file.partition_values,))}
    assert met == read


def test_times_that_never_have_a_zone_are_what_they_say(log: Log) -> None:
    facts = by_time(ZONELESS, "2020-05-04 21:00:00", type_name="timestamp_ntz")
    assert met_texts(log, facts, ZONELESS) == {ZONELESS}
