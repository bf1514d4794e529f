"""In which lane a bin is written, and what is kept of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pyarrow.parquet as pq
import pytest

from maintainer.delta.rewrite import bin_writer
from maintainer.delta.rewrite.bin_work import WrittenBin
from maintainer.delta.rewrite.bin_writer import write_bins
from maintainer.delta.rewrite.rewrite_proof import prove_rewrite
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
