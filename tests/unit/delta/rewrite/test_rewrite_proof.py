"""Statistics that the log has of our files after the commit, by the rows of real files."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maintainer.delta.log.staged_file import WrittenFile
from maintainer.delta.log.statistics_columns import statistics_columns
from maintainer.delta.proof.second_engine.column_values import CannotCompareError, OtherTypeError
from maintainer.delta.proof.statistics_figures import RowFigures
from maintainer.delta.rewrite import proof_parts, rewrite_proof
from maintainer.delta.rewrite.rewrite_proof import judge_landed
from maintainer.delta.storage.file_store import TransferError
from maintainer.delta.storage.local_files import OnDisk
from maintainer.errors import VerificationFailed

SCHEMA = {"type": "struct", "fields": [{"name": "d", "type": "double", "metadata": {}, "nullable": True}]}
COLUMNS = statistics_columns(SCHEMA, ())
STATS = {"numRecords": 3, "minValues": {"d": 1.5}, "maxValues": {"d": "NaN"}, "nullCount": {"d": 1}}


@pytest.fixture
def job(tmp_path: Path) -> Any:
    """A job that wrote one file, whose statistics were proven."""
    pq.write_table(pa.table({"d": [1.5, float("nan"), None]}), tmp_path / "new.parquet")
    proven = json.dumps(STATS), COLUMNS, RowFigures(3, (1,), 0, 0b11)
    return SimpleNamespace(
        judged={"new.parquet": proven},
        metadata={"schemaString": json.dumps(SCHEMA), "partitionColumns": [], "configuration": {}},
        storage=SimpleNamespace(uri=lambda path: f"file:{tmp_path}/{path}"),
        place=SimpleNamespace(here=OnDisk()),
        jvm=SimpleNamespace(session_setting={}.get),
    )


@pytest.mark.parametrize(
    ("landed", "wrong"),
    [
        (STATS, []),
        ({**STATS, "tightBounds": True}, []),
        (
            {**STATS, "maxValues": {"d": 4.73}},
            ["rows lie outside the bounds of d (minValues says 1.5, maxValues 4.73)"],
        ),
        ({**STATS, "minValues": {"d": 1.0}}, ["minValues of d says 1.0, which no row reaches"]),
        ({**STATS, "nullCount": {"d": 0}}, ["nullCount of d says 0, it holds 1 null"]),
        ({**STATS, "numRecords": 4}, ["numRecords says 4, it holds 3 rows"]),
        ({**STATS, "nullCount": {"d": 1, "e": 0}}, ["it has statistics of e, which is no column"]),
        (None, ["it has no statistics"]),
    ],
    ids=str,
)
def test_the_log_is_judged_by_the_rows_and_by_the_rule_of_the_proof(job: Any, landed: Any, wrong: list[str]) -> None:
    add = {"path": "new.parquet", "stats": landed and json.dumps(landed, indent=1)}
    assert judge_landed(job, [add]) == tuple(f"new.parquet: {text}" for text in wrong)


def test_figures_of_the_proof_count_for_the_text_that_they_were_measured_for(job: Any, tmp_path: Path) -> None:
    """A file is not read again for them; what they say stands."""
    text, columns, _ = job.judged["new.parquet"]
    (tmp_path / "new.parquet").unlink()
    assert judge_landed(job, [{"path": "new.parquet", "stats": text}]) == ()
    job.judged["new.parquet"] = text, columns, RowFigures(3, (1,), 1, 0b11)
    (problem,) = judge_landed(job, [{"path": "new.parquet", "stats": text}])
    assert "rows lie outside the bounds of d" in problem


def test_what_cannot_be_judged_is_said_and_stops_nothing(job: Any, tmp_path: Path) -> None:
    (tmp_path / "new.parquet").unlink()
    (problem,) = judge_landed(cast(Any, job), [{"path": "new.parquet", "stats": "{}"}, {"path": "other"}])
    assert "not those that were proven, and cannot be judged" in problem


def test_statistics_of_a_file_of_which_rows_were_deleted_are_judged_by_its_rows_too(job: Any) -> None:
    """That they are those of before, widened by the same rule, says nothing of that rule."""
    text = json.dumps({**STATS, "maxValues": {"d": 4.73}})
    written = WrittenFile({"path": "new.parquet", "stats": text})
    columns, figures = COLUMNS, RowFigures(3, (1,), 0, 0b11)
    job.carried_deletes = SimpleNamespace(bins={0}, written=(written,), vectors={})
    job.where, job.read_version = "t", 3
    for outside, is_wrong in ((0, False), (1, True)):
        measured = SimpleNamespace(columns=columns, files=(replace(figures, outside=outside),))
        part = cast(Any, SimpleNamespace(written=(written,), measured=measured))
        with pytest.raises(VerificationFailed, match="do not fit their rows") if is_wrong else nullcontext():
            rewrite_proof._prove_statistics(job, part)


@pytest.mark.parametrize(
    ("error", "asked"),
    [
        (OtherTypeError, ["DuckDB"]),
        (CannotCompareError, ["DuckDB", "Spark"]),
        (TransferError, ["DuckDB", "Spark"]),  # of a deletion vector, say
    ],
)
def test_a_new_file_of_other_types_is_not_left_to_spark(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception], asked: list[str]
) -> None:
    """On a store nobody would look at its types again; what cannot be compared is Spark's."""
    provers: list[str] = []

    def part(job: Any, prover: proof_parts.Prover, bins: tuple[int, ...]) -> str:
        provers.append(prover)
        if prover is proof_parts.Prover.DUCKDB:
            raise error("a reason")
        return "proven"

    monkeypatch.setattr(proof_parts, "_prover_of", lambda job, number: proof_parts.Prover.DUCKDB)
    monkeypatch.setattr(proof_parts, "_part", part)
    job: Any = SimpleNamespace(batch=SimpleNamespace(bins=[SimpleNamespace(live_records=1)]), spread=None, where="t")
    with pytest.raises(OtherTypeError) if error is OtherTypeError else nullcontext():
        assert len(proof_parts.parts_of(job)) == 1
    assert provers == asked


@pytest.mark.parametrize(("master", "is_read"), [("local[2]", True), ("spark://host:7077", False), ("yarn", False)])
def test_on_a_cluster_the_driver_decodes_no_file_that_spark_proves(job: Any, master: str, is_read: bool) -> None:
    """On a mount that all machines share it decoded all of them alone, before Spark began."""
    job.jvm = SimpleNamespace(session_setting={"spark.master": master}.get)
    job.storage.files = SimpleNamespace(asks_by_request=False)
    add: dict[str, Any] = {"path": "new.parquet", "partitionValues": {}, "stats": None}
    assert bool(proof_parts._footers_here(job, (WrittenFile(add),))) == is_read
