"""The proof of the prover: forged rewrites of many kinds of tables, each caught; clean ones, none refused.

Every fault is planted in copies of the files that a real rewrite wrote, and the prover itself is run on them. All of
it: ``make long`` (or ``pytest -m long tests/integration/verification/test_forged_rewrites.py``); ``make test`` plants
the faults of one table.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.verification.forged_actions import ACTION_FAULTS, HARMLESS, STATS_FAULTS, in_stats
from tests.integration.verification.forged_rows import ROW_FAULTS, Forgery, Plant, forge, in_rows
from tests.integration.verification.forged_tables import SHAPES, Shape
from tests.support.product import (
    Batch,
    CommitNotLanded,
    DeltaEngine,
    DeltaTableEngine,
    Lane,
    LaneChoice,
    LiveFilesReader,
    MaintainerError,
    RewriteJob,
    RewriteTimings,
    SessionLease,
    TableError,
    TableRef,
    VerificationFailed,
    prove_removes,
    prove_rewrite,
    why_not_copy,
    why_not_local,
    write_bins,
)
from tests.support.tables.delta_tables import compaction, zorder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("small_row_groups_are_copied")]

SEED = 20261121
LEAST_FAULTS = 30
EVOLVED = "column mapping"
"""The shape whose files do not all have the table's columns of today."""

UNREADABLE = {"a file is gone from storage": TableError, "a file is cut off, with its size": CommitNotLanded}
"""What nobody miswrote and cannot be proven all the same: nothing is committed, and nobody is accused."""


def shapes(*in_every_run: str) -> pytest.MarkDecorator:
    """Each kind of table in each lane; ``make test`` has those that are named."""
    return pytest.mark.parametrize(
        ("shape", "lane"),
        [
            pytest.param(
                shape,
                lane,
                id=f"{shape.name.replace(' ', '-')}-{lane}",
                marks=pytest.mark.every_run if shape.name in in_every_run else (),
            )
            for shape in SHAPES
            for lane in Lane
        ],
    )


def _written(spark: SparkSession, engine: DeltaTableEngine, shape: Shape, lane: Lane, path: Path) -> RewriteJob:
    """A rewrite of the whole table in a lane, written and not committed."""
    shape.build(spark, path, SEED)
    facts = engine.reader.facts(TableRef(str(path)))
    step, batch = zorder(facts, *shape.zorder, max_file_size_bytes=2000) if shape.zorder else compaction(facts)
    if lane is not Lane.SPARK:
        no_lane = why_not_copy(facts, step) if lane is Lane.COPY else why_not_local(facts, step)
        if lane is Lane.COPY and any(file.deletion_vector for file in facts.files):
            no_lane = "soft-deleted rows"
        if no_lane:
            pytest.skip(f"only Spark takes this table: {no_lane}")
        batch = Batch(tuple(replace(bin_, lane=LaneChoice(lane, "asked for")) for bin_ in batch.bins))
        step = replace(step, batches=(batch,))
    job = RewriteJob(engine.jvm, facts, step, batch, "forged", LiveFilesReader(engine.jvm))
    job.open()
    write_bins(job)
    unfit = {choice.reason for choice in job.lanes.values() if choice.lane is not lane}
    if lane is Lane.COPY and unfit:
        assert (unfit, shape.name) == ({"its files have other columns or types than the table has today"}, EVOLVED)
        pytest.skip("the files of an evolved table are not copied")
    assert not unfit
    assert len(job.written) >= (2 if shape.partition_by or shape.zorder else 1)
    return job


def _log(path: Path) -> list[str]:
    return sorted(file.name for file in (path / "_delta_log").iterdir())


def _caught(job: RewriteJob, forgery: Forgery) -> MaintainerError | None:
    forged = replace(job, written=forgery.written, timings=RewriteTimings())
    for adds in (job.sources, [file.add for file in forgery.written]):
        with suppress(Exception):  # on a store what is read here is what was fetched; what cannot be is not there
            forged.place.fetch(forged.storage, adds)
    try:
        with forged.discarded_on_failure():
            prove_rewrite(forged)
    except MaintainerError as error:
        return error
    finally:
        forged.close()
    return None


FAULTS: dict[str, Plant] = {
    **{name: in_rows(change) for name, change in ROW_FAULTS.items()},
    **{name: in_stats(change) for name, change in STATS_FAULTS.items()},
    **ACTION_FAULTS,
}


@pytest.mark.sampled(10)
@shapes("plain")
def test_every_forged_rewrite_is_caught(
    spark: SparkSession, lease: SessionLease, lake: Path, shape: Shape, lane: Lane
) -> None:
    path = lake / "t"
    with DeltaEngine(lease).worker("forged") as engine:
        job = _written(spark, engine, shape, lane, path)
        before, missed, planted = _log(path), [], 0
        for name, plant in FAULTS.items():
            forgery = forge(path, job.written, f"{SEED}/{shape.name}/{name}")
            copies = [forgery.path(file) for file in forgery.written]
            if not plant(forgery):
                continue
            planted += 1
            error = _caught(job, forgery)
            if not isinstance(error, UNREADABLE.get(name, VerificationFailed)):
                missed.append(f"{name}: {error!r}")
            offered = {forgery.path(file) for file in forgery.written}
            missed += [f"{name}: left {copy.name}" for copy in copies if copy in offered and copy.exists()]
        assert (missed, planted >= LEAST_FAULTS) == ([], True), f"{planted} faults planted"
        assert _log(path) == before
        assert all((path / file.path).exists() for file in job.written if "%" not in file.path)


@pytest.mark.sampled(6)
@shapes()
def test_no_clean_rewrite_is_refused(
    spark: SparkSession, lease: SessionLease, lake: Path, shape: Shape, lane: Lane
) -> None:
    path = lake / "t"
    with DeltaEngine(lease).worker("clean") as engine:
        job = _written(spark, engine, shape, lane, path)
        refused = {}
        # What was copied has the bytes of its sources, or it was not copied: nothing else passes.
        harmless = {"as written": HARMLESS["as written"]} if lane is Lane.COPY else HARMLESS
        for name, plant in harmless.items():
            forgery = forge(path, job.written, f"{SEED}/{shape.name}/{name}")
            assert plant(forgery) or name.startswith("with statistics")
            refused[name] = _caught(job, forgery)
        assert [f"{name}: {error!r} {error.found}" for name, error in refused.items() if error is not None] == []


@pytest.mark.nightly
def test_a_commit_that_removes_something_else_is_caught(spark: SparkSession, lease: SessionLease, lake: Path) -> None:
    path = lake / "t"
    with DeltaEngine(lease).worker("removes") as engine:
        job = _written(spark, engine, SHAPES[0], Lane.SPARK, path)
        sources = job.sources
        prove_removes(job, job.jvm.removes_of(sources, 1))
        stranger = job.written[0].to_commit()
        for forged in (sources[1:], [*sources, sources[0]], [*sources, stranger], []):
            with pytest.raises(VerificationFailed) as caught:
                prove_removes(job, job.jvm.removes_of(forged, 1))
            assert caught.value.code == "V502"


def test_there_are_enough_cases() -> None:
    # Not every fault applies to every table: the test above asks for so many on each.
    assert LEAST_FAULTS * len(SHAPES) >= 240
    assert len(HARMLESS) * len(SHAPES) >= 100
