"""In which lane a bin is written, what is kept of it, and what becomes of one of which nothing is written."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow.parquet as pq
import pytest

from maintainer.delta.jvm import DeltaJvm
from maintainer.delta.rewrite import bin_writer, rewrite_proof
from maintainer.delta.rewrite.bin_work import WrittenBin
from maintainer.delta.rewrite.bin_writer import write_bins
from maintainer.delta.rewrite.rewrite_proof import prove_rewrite
from maintainer.errors import TableError
from maintainer.model.plan.lanes import Codec, Lane
from tests.support.writers.tasks_here import Rewrite, Tasks


@pytest.fixture
def rewrite(tmp_path: Path) -> Rewrite:
    return Rewrite(tmp_path / "t")


def test_with_another_codec_rows_are_written_anew(rewrite: Rewrite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maintainer.delta.rewrite.copy_lane.MIN_ROW_GROUP_BYTES", 1)
    rewrite.lane, rewrite.codec = Lane.COPY, Codec.ZSTD
    with rewrite.job(Tasks()) as job:
        write_bins(job)
        proof = prove_rewrite(job)
        (use,) = proof.lanes
        assert (use.lane, use.num_bins, use.prover, proof.read.rows) == (Lane.LOCAL, 2, "DuckDB", 12)
        assert use.reason == "its files have another codec than zstd; on an executor"
        for file in job.written:
            assert pq.read_metadata(rewrite.path / unquote(file.path)).row_group(0).column(0).compression == "ZSTD"
        job.discard()


def test_the_places_of_rows_are_counted_while_other_threads_add_theirs(rewrite: Rewrite) -> None:
    """A batch of 10 GiB failed: dictionary changed size during iteration."""
    with rewrite.job(Tasks()) as job:

        class Order(list[int]):
            def __len__(self) -> int:
                job.row_orders[len(job.row_orders) + 10] = []  # as another thread does meanwhile
                return 6

        orders: Any = {7: [Order()], 8: [Order()]}
        job.row_orders.update(orders)
        bin_writer._take(job, 1, WrittenBin((), (), row_order=[np.arange(6)]))
        assert 1 in job.row_orders


@pytest.mark.parametrize("others_say", ["numRecords 2", "numRecords 4", "x 0"])
def test_a_log_that_says_of_a_bin_that_it_has_no_rows_was_wrong_before(
    rewrite: Rewrite, monkeypatch: pytest.MonkeyPatch, others_say: str
) -> None:
    """Nothing is written of it: its rows seemed to be lost by us (V501), and the table went into quarantine."""
    for commit in (rewrite.path / "_delta_log").glob("*.json"):
        lines = []
        for line in commit.read_text(encoding="utf-8").splitlines():
            key, said = ("numRecords 0" if "part=c" in line else others_say).split()
            lines.append(line.replace(r"\"numRecords\":2", rf"\"{key}\":{said}"))
        commit.write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.setattr(rewrite_proof, "begin", lambda job: SimpleNamespace(snapshot=None))
    monkeypatch.setattr(rewrite_proof, "rows_by_file", lambda jvm, log, sources, files: [2] * len(files))
    monkeypatch.setattr(DeltaJvm, "log_at", lambda *anything: None)
    with rewrite.job(Tasks(), None, **{"spark.master": "local[2]"}) as job:
        write_bins(job)
        assert (len(job.written), len(job.lanes)) == (1, 1)
        with pytest.raises(TableError) as caught:
            prove_rewrite(job)
        assert caught.value.code == "T421"
        assert "the log says 0 rows, it holds 2" in str(caught.value.found)
        job.discard()
