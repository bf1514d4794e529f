"""Which files a command will take: the planned ones where settings can say so, and the difference where not."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maintainer.delta.commands.command_selection import refuse_other_spelling, refuse_part_of_a_partition, select
from maintainer.errors import CommitConflict, Refused
from maintainer.model.plan.lanes import Codec
from maintainer.model.plan.layout_tags import RewriteRequest
from maintainer.model.plan.steps import (
    Batch,
    Bin,
    ClusterStep,
    CompactStep,
    PartitionRewriteStep,
    PurgeStep,
    ZOrderStep,
)
from maintainer.model.table.table_facts import DataFile, TableRecord
from maintainer.planning.operations.compaction import plan_compaction
from maintainer.planning.plan_input import TableInput
from tests.support.suites.example_counts import examples
from tests.support.tables.builders import NOW_MS, make_facts, make_file, make_files, make_optimize, make_policy

_OPTIMIZE = "spark.databricks.delta.optimize."


def _compact(*bins: Bin) -> CompactStep:
    return CompactStep((Batch(bins),), 100, 4, ())


def test_small_files_of_a_table_without_partitions() -> None:
    small, large = make_files(10, 20, 30), make_file("large", size=90)
    step = _compact(Bin(small))
    selection = select(make_facts(files=[*small, large]), step, step.batches[0], "t")
    assert selection.statement == "OPTIMIZE t"
    assert dict(selection.settings) == {
        f"{_OPTIMIZE}maxFileSize": "100",
        f"{_OPTIMIZE}maxThreads": "4",
        f"{_OPTIMIZE}batchSize": None,
        f"{_OPTIMIZE}repartition.enabled": None,
        f"{_OPTIMIZE}minFileSize": "31",
        f"{_OPTIMIZE}maxDeletedRowsRatio": "1.000000000000",
        "spark.databricks.delta.write.utcTimestampPartitionValues": "true",
        "spark.sql.readSideCharPadding": "false",
    }
    assert (set(selection.takes), selection.beyond, selection.untaken) == (set(small), (), ())


def test_a_lone_file_with_deleted_rows_is_purged() -> None:
    lone, other = make_file("lone", size=90, records=10, deleted=5), make_file("other", size=80)
    step = _compact(Bin((lone,)))
    selection = select(make_facts(files=[lone, other]), step, step.batches[0], "t")
    assert selection.statement == "REORG TABLE t APPLY (PURGE)"
    assert (selection.takes, selection.beyond, selection.untaken) == ((lone,), (), ())


def test_what_settings_cannot_say_is_told() -> None:
    files = make_files(10, 20, 30, 40)
    step = _compact(Bin((files[0], files[3])))
    selection = select(make_facts(files=files), step, step.batches[0], "t")
    assert set(selection.beyond) == {files[1], files[2]}
    assert selection.untaken == ()


def test_zorder_takes_the_partitions_whole() -> None:
    files = make_files(10, 20)
    step = ZOrderStep((Batch((Bin(files),)),), ("`a b`",), 100, 4, ())
    new = make_file("new", size=5)
    selection = select(make_facts(files=[*files, new]), step, step.batches[0], "t")
    assert selection.statement == "OPTIMIZE t ZORDER BY (`a b`)"
    assert (selection.beyond, selection.untaken) == ((new,), ())


def test_zorder_of_part_of_a_partition_is_refused() -> None:
    planned, ordered, appended = make_files(10, 20), make_file("ordered", size=31), make_file("appended", size=5)
    step = ZOrderStep((Batch((Bin(planned),)),), ("id",), 100, 4, ())
    beside = select(make_facts(files=[*planned, appended]), step, step.batches[0], "t")
    refuse_part_of_a_partition(beside, step, step.batches[0], "t")
    part = select(make_facts(files=[*planned, ordered]), step, step.batches[0], "t")
    with pytest.raises(Refused) as caught:
        refuse_part_of_a_partition(part, step, step.batches[0], "t")
    assert (caught.value.code, caught.value.found) == ("A441", "30 B planned, 31 B beside them would be rewritten")


_FILE = st.tuples(st.integers(1, 130), st.integers(0, 9), st.sampled_from(("a", "b")))


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(_FILE, max_size=14))
def test_a_plan_is_taken_as_it_is_planned(described: list[tuple[int, int, str]]) -> None:
    """Random sizes and deleted rows: the command takes what the plan of all multi-file bins says, file by file."""
    files = [
        make_file(f"f{number}", size=size, records=10, deleted=max(0, deleted - 5), partition={"p": part})
        for number, (size, deleted, part) in enumerate(described)
    ]
    facts = make_facts(files=files, partitioned_by=("p",))
    policy = make_policy(optimize=make_optimize(max_deleted_rows_ratio=0.0))
    step = plan_compaction(TableInput(policy, facts, TableRecord(), NOW_MS, date(2026, 1, 1))).step
    if step is None:
        return
    assert isinstance(step, CompactStep)
    (batch,) = step.batches
    selection = select(facts, step, batch, "t")
    lone: set[DataFile] = {bin_.files[0] for bin_ in batch.bins if len(bin_.files) == 1}
    if not lone:
        assert (selection.beyond, selection.untaken) == ((), ())
    else:
        # OPTIMIZE leaves a lone file; REORG takes it, and leaves what has no deleted rows.
        assert set(selection.takes) | set(selection.untaken) >= set(batch.files)
        assert selection.takes


def test_a_purge_is_a_reorg_and_a_shuffle_is_a_setting() -> None:
    lone = make_file("lone", size=90, deleted=1)
    step = PurgeStep((Batch((Bin((lone,)),)),), 100, 4, ())
    selection = select(make_facts(files=(lone, make_file("clean", size=90))), step, step.batches[0], "t")
    assert selection.statement == "REORG TABLE t APPLY (PURGE)"
    assert (selection.takes, selection.beyond, selection.untaken) == ((lone,), (), ())
    files = make_files(10, 20)
    shuffled = replace(_compact(Bin(files)), repartition=True)
    settings_ = dict(select(make_facts(files=files), shuffled, shuffled.batches[0], "t").settings)
    assert settings_[f"{_OPTIMIZE}repartition.enabled"] == "true"


def test_the_codec_of_the_plan_is_a_setting() -> None:
    small = make_files(10, 20, 30)
    step = replace(_compact(Bin(small)), codec=Codec.ZSTD)
    selection = select(make_facts(files=small), step, step.batches[0], "t")
    assert dict(selection.settings)["spark.sql.parquet.compression.codec"] == "zstd"


def test_clustering_is_an_optimize_with_the_bounds_of_the_plan() -> None:
    files = make_files(10, 20)
    step = ClusterStep((Batch((Bin(files),)),), ("id",), 100, 200, 300, 4, True, ())
    selection = select(make_facts(files=files, clustering_columns=("id",)), step, step.batches[0], "t")
    assert selection.statement == "OPTIMIZE t FULL"
    cubes = f"{_OPTIMIZE}clustering.mergeStrategy.minCubeSize."
    assert {key: value for key, value in selection.settings if key.startswith(cubes)} == {
        f"{cubes}threshold": "200",
        f"{cubes}targetCubeSize": "300",
    }
    assert (set(selection.takes), selection.beyond, selection.untaken) == (set(files), (), ())


def test_no_command_rewrites_partitions_as_asked() -> None:
    files = make_files(10, 20)
    step = PartitionRewriteStep((Batch((Bin(files),)),), RewriteRequest(4, None), 4, ())
    with pytest.raises(Refused, match="A442"):
        select(make_facts(files=files), step, step.batches[0], "t")


def test_times_are_named_as_the_log_spells_them_and_other_spellings_are_refused() -> None:
    def spelled(name: str, text: str) -> DataFile:
        return replace(make_file(name, partition={"ts": "2020-05-05 00:00:00"}), stored_values=(("ts", text),))

    zoned = "2020-05-05T00:00:00.000000Z"
    files = [spelled(name, zoned) for name in "ab"]
    facts = make_facts(files=files, columns={"id": "long", "ts": "timestamp"}, partitioned_by=("ts",))
    batch = Batch((Bin(facts.files),))
    step = CompactStep((batch,), 1000, 1, ())
    assert f"WHERE (`ts` = CAST('{zoned}' AS timestamp))" in select(facts, step, batch, "t").statement
    refuse_other_spelling(facts, batch, "t")
    # A time without a zone may be the same moment to the session, and would be taken along and spelled anew.
    zoneless = make_file("c", partition={"ts": "2020-05-05 03:00:00"})
    with pytest.raises(CommitConflict) as refused:
        refuse_other_spelling(replace(facts, files=(*files, zoneless)), batch, "t")
    assert refused.value.found == "ts=2020-05-05 00:00:00, spelled in another way since the plan was made"
