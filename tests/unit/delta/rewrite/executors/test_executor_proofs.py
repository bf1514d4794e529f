"""What an executor answers where a bin was written, and something is wrong with its proof or its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from maintainer.delta.proof.second_engine.column_values import CannotCompareError
from maintainer.delta.rewrite import bin_writer
from maintainer.delta.rewrite.bin_writer import write_bins
from maintainer.delta.rewrite.executors import executor_tasks
from maintainer.delta.rewrite.rewrite_proof import prove_rewrite
from maintainer.delta.storage.file_store import TransferError
from maintainer.delta.storage.local_files import OnDisk
from maintainer.errors import CommitNotLanded
from maintainer.model.plan.lanes import Lane
from tests.support.writers.tasks_here import Rewrite, Tasks


@pytest.fixture
def rewrite(tmp_path: Path) -> Rewrite:
    return Rewrite(tmp_path / "t")


@pytest.mark.parametrize("error", [CannotCompareError, TransferError])
def test_where_an_executor_cannot_prove_a_bin_another_one_proves_it(
    rewrite: Rewrite, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """The file of a deletion vector may be refused to it; the bin is as good as before."""

    def refused(*anything: Any) -> Any:
        raise error("403 Forbidden")

    monkeypatch.setattr(executor_tasks, "rows_here", refused)
    with rewrite.job(Tasks(), spread=True, **{"spark.master": "local[2]"}) as job:
        write_bins(job)
        (use,) = prove_rewrite(job).lanes
        assert (use.lane, use.num_bins, use.prover, use.reason) == (Lane.LOCAL, 2, "DuckDB", "small; on an executor")
        job.discard()


def test_a_file_that_the_store_holds_otherwise_ends_the_batch_and_no_other_lane_writes_it(
    rewrite: Rewrite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lane spark wrote the bin next, and nobody looks at the content of what it stores."""

    def altered(here: OnDisk, uri: str) -> Any:
        raise CommitNotLanded("the store does not hold the new file as it was written", where=uri, found="MD5 1, not 2")

    monkeypatch.setattr(OnDisk, "publish", altered)
    monkeypatch.setattr(bin_writer, "write_by_spark", lambda job, number, bin_, sources: [])
    with rewrite.job(Tasks()) as job:
        with pytest.raises(CommitNotLanded, match="C702") as caught:
            write_bins(job)
        assert caught.value.found == "MD5 1, not 2"
    assert rewrite.new_files == set()
