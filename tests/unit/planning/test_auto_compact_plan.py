from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from maintainer.errors import TableError
from maintainer.model.plan.layout_tags import ROW_ORDER_TAGS
from maintainer.model.run.auto_compaction import (
    AUTO_COMPACT,
    LEGACY_AUTO_OPTIMIZE,
    MAX_PARTITIONS,
    AutoCompactSettings,
    SwitchSource,
    switch_of,
)
from maintainer.model.table.table_facts import DataFile, PartitionValues
from maintainer.planning.auto_compact_plan import (
    AutoCompactArguments,
    AutoCompactDecision,
    plan_auto_compact,
    settings_of,
)
from tests.support.tables.builders import MIB, NOW_MS, make_facts, make_file

SETTINGS = AutoCompactSettings(3, 50, 100, True)


def partition(name: str, *sizes: int, tags: Mapping[str, str] | None = None) -> list[DataFile]:
    return [make_file(f"{name}{i}", size=size, partition={"p": name}, tags=tags) for i, size in enumerate(sizes)]


def decide(
    files: list[DataFile],
    written: set[str] | None = None,
    settings: AutoCompactSettings = SETTINGS,
) -> AutoCompactDecision:
    values: set[PartitionValues] | None = None if written is None else {(("p", name),) for name in written}
    facts = make_facts(files=files, partitioned_by=("p",))
    return plan_auto_compact(facts, settings, values, now_ms=NOW_MS)


def paths(decision: AutoCompactDecision) -> set[str]:
    assert decision.step is not None
    return {file.path for batch in decision.step.batches for file in batch.files}


class TestSwitch:
    @pytest.mark.parametrize(
        ("session", "properties", "enabled", "source"),
        [
            (None, {}, False, SwitchSource.DEFAULT),
            (None, {AUTO_COMPACT: "tRue"}, True, SwitchSource.PROPERTY),
            (None, {"Delta.AUTOoptimize.autocompact": "true"}, True, SwitchSource.PROPERTY),
            (None, {AUTO_COMPACT: "false"}, False, SwitchSource.PROPERTY),
            (None, {LEGACY_AUTO_OPTIMIZE: "true", AUTO_COMPACT: "false"}, True, SwitchSource.LEGACY_PROPERTY),
            (None, {LEGACY_AUTO_OPTIMIZE: "false", AUTO_COMPACT: "true"}, True, SwitchSource.PROPERTY),
            (None, {LEGACY_AUTO_OPTIMIZE: "false"}, False, SwitchSource.DEFAULT),
            ("false", {LEGACY_AUTO_OPTIMIZE: "true", AUTO_COMPACT: "true"}, False, SwitchSource.SESSION),
            ("TRUE", {AUTO_COMPACT: "false"}, True, SwitchSource.SESSION),
        ],
    )
    def test_precedence_is_that_of_delta(
        self, session: str | None, properties: dict[str, str], enabled: bool, source: SwitchSource
    ) -> None:
        switch = switch_of(session, properties)
        assert (switch.enabled, switch.source) == (enabled, source)
        assert switch.text == f"{'on' if enabled else 'off'} ({source.value})"

    @pytest.mark.parametrize(("session", "properties"), [("auto", {}), (None, {AUTO_COMPACT: "legacy"})])
    def test_what_delta_would_refuse_is_refused(self, session: str | None, properties: dict[str, str]) -> None:
        with pytest.raises(ValueError, match="neither true nor false"):
            switch_of(session, properties)


class TestSettings:
    def of(
        self,
        arguments: AutoCompactArguments = AutoCompactArguments(),  # noqa: B008 (frozen)
        properties: dict[str, str] | None = None,
        session: dict[str, str] | None = None,
    ) -> AutoCompactSettings:
        own = {f"maintainer.autoCompact.{key}": value for key, value in (properties or {}).items()}
        conf = {f"spark.databricks.delta.autoCompact.{key}": value for key, value in (session or {}).items()}
        return settings_of(arguments, make_facts(properties=own), conf.get)

    def test_defaults_are_those_of_delta(self) -> None:
        assert self.of() == AutoCompactSettings(50, 64 * MIB, 128 * MIB, True)

    def test_arguments_then_table_then_session(self) -> None:
        session = {"minNumFiles": "7", "maxFileSize": "1000", "modifiedPartitionsOnly.enabled": "false"}
        assert self.of(session=session) == AutoCompactSettings(7, 500, 1000, False)
        table = {"minNumFiles": "8", "minFileSize": "1MiB", "maxFileSize": "default", "modifiedPartitionsOnly": "True"}
        with pytest.raises(ValueError, match="minFileSize is 1048576 and maxFileSize 1000"):
            self.of(properties=table, session=session)
        table["maxFileSize"] = "3MiB"
        assert self.of(properties=table, session=session) == AutoCompactSettings(8, MIB, 3 * MIB, True)
        said = AutoCompactArguments(9, 10, "20", modified_partitions_only=False)
        assert self.of(said, table, session) == AutoCompactSettings(9, 10, 20, False)

    @pytest.mark.parametrize(
        ("properties", "message"),
        [
            ({"minNumFiles": "many"}, "minNumFiles is `many`"),
            ({"minNumFiles": "-1"}, "0 or more"),
            ({"maxFileSize": "big"}, "maxFileSize is `big`"),
            ({"maxFileSize": "0"}, "more than 0"),
            ({"modifiedPartitionsOnly": "1"}, "neither true nor false"),
        ],
    )
    def test_what_cannot_be_read_is_named(self, properties: dict[str, str], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            self.of(properties=properties)


def test_only_small_files_count() -> None:
    """Delta counts every file when no minFileSize is set in the session (delta issue 4045)."""
    assert decide(partition("a", 10, 10, 50, 80, 90)).step is None
    decision = decide(partition("a", 10, 10, 49, 80, 90))
    assert paths(decision) == {"a0", "a1", "a2"}
    assert decision.step is not None
    assert decision.step.auto
    assert "3 files under 50 B in one partition" in decision.reason


def test_a_first_write_alone_does_not_qualify() -> None:
    """Delta compacts two files at the first write to a partition after a restart of the driver (delta issue 4043)."""
    decision = decide(partition("a", 10, 10), {"a"})
    assert (decision.step, decision.partitions) == (None, ())
    assert decision.reason.startswith("at most 2 files under 50 B in a partition written since")


def test_only_partitions_written_since_the_last_one_are_looked_at() -> None:
    files = partition("a", 10, 10, 10) + partition("b", 10, 10, 10) + partition("c", 10)
    assert paths(decide(files, {"b", "c"})) == {"b0", "b1", "b2"}
    assert decide(files, {"c"}).step is None
    assert decide(files, set()).step is None
    assert decide(files, {"a", "b"}).partitions == ("p=a", "p=b")
    assert paths(decide(files, None)) == {f"{p}{i}" for p in "ab" for i in range(3)}


def test_without_it_one_full_partition_opens_the_whole_table() -> None:
    settings = AutoCompactSettings(3, 50, 100, False)
    files = partition("a", 10, 10, 10) + partition("b", 20, 20) + partition("c", 10)
    assert paths(decide(files, set(), settings)) == {"a0", "a1", "a2", "b0", "b1"}
    assert decide(partition("a", 10, 10) + partition("b", 10, 10), None, settings).step is None


def test_zero_files_are_enough_if_the_caller_says_so() -> None:
    assert paths(decide(partition("a", 10, 10), {"a"}, AutoCompactSettings(0, 50, 100, True))) == {"a0", "a1"}


def test_what_the_last_one_wrote_is_not_written_again() -> None:
    packed = partition("a", 20, 20, 20, tags={"maintainer.packed": "100"})
    decision = decide(packed, {"a"})
    assert (decision.step, decision.partitions) == (None, ("p=a",))


def test_the_partitions_with_most_small_files_come_first_and_there_is_a_bound() -> None:
    files = [file for number in range(MAX_PARTITIONS + 5) for file in partition(f"x{number}", 1, 1, 1)]
    decision = decide([*files, *partition("z", 1, 1, 1, 1)])
    assert len(decision.partitions) == MAX_PARTITIONS
    assert decision.partitions[0] == "p=z"


def test_a_table_that_cannot_be_maintained_says_so() -> None:
    facts = make_facts(files=[make_file(str(i), size=1) for i in range(3)], clustering_columns=("id",))
    with pytest.raises(TableError):
        plan_auto_compact(facts, SETTINGS, None, now_ms=NOW_MS)


@pytest.mark.parametrize("tag", sorted(ROW_ORDER_TAGS))
def test_files_whose_rows_are_in_an_order_are_not_packed_with_others(tag: str) -> None:
    """They would be out of it, and the night would put them in order again."""
    ordered, loose = partition("o", 10, 10, 10, tags={tag: "x"}), partition("o", 9, 9, 9)
    assert decide(ordered).step is None
    loose = [replace(file, path=f"loose{number}") for number, file in enumerate(loose)]
    assert paths(decide([*ordered, *loose])) == {file.path for file in loose}
    assert decide([*ordered, *loose[:2]]).step is None
