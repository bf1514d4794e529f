"""The golden tables of the Delta project: facts or one clear error for each, and not a byte changed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.product import (
    DeltaEngine,
    EnvironmentUnfit,
    SessionLease,
    SparkReader,
    TableError,
    TableRef,
    TableStorage,
    unsupported_features,
)
from tests.support.tables.delta_tables import bytes_of, removed_files

pytestmark = [pytest.mark.spark, pytest.mark.golden, pytest.mark.slow]

ROOT = Path(os.environ.get("MAINTAINER_GOLDEN_TABLES", Path(__file__).parents[3] / "shared" / "golden" / "tables"))

BROKEN = {
    "deltalog-invalid-protocol-version": "T404",
    "deltalog-state-reconstruction-from-checkpoint-missing-metadata": "T403",
    "deltalog-state-reconstruction-without-metadata": "T403",
    "deltalog-state-reconstruction-without-protocol": "T403",
    # Folders around other tables, and plain Parquet.
    "data-reader-date-types-America": "T402",
    "data-reader-date-types-Asia": "T402",
    "data-reader-date-types-Etc": "T402",
    "log-store-listFrom": "T402",
    "log-store-read": "T402",
    "no-delta-log-folder": "T402",
}


@pytest.mark.skipif(not ROOT.is_dir(), reason=f"no golden tables at {ROOT}")
@pytest.mark.long
def test_facts_of_every_golden_table(lease: SessionLease, tmp_path: Path) -> None:
    names = sorted(file.name for file in ROOT.iterdir() if file.is_dir())
    assert names
    failed: dict[str, str] = {}
    traces = 0
    odd: set[str] = set()
    with DeltaEngine(lease).worker("golden") as engine:
        for name in names:
            copy = tmp_path / name
            shutil.copytree(ROOT / name, copy)
            before = bytes_of(copy)
            try:
                facts = engine.reader.facts(TableRef(str(copy)))
                assert facts.version >= 0
                # Most were read from the log without Spark: Spark's own reader says the same.
                storage = TableStorage(engine.jvm, f"file:{copy}")
                assert SparkReader(engine.jvm).facts(facts.ref, storage) == facts, name
                odd |= set(unsupported_features(facts.protocol))
                gone = removed_files(engine, facts, before_ms=facts.committed_at_ms)
                live = {file.path for file in facts.files}
                assert not live & {file.path for file in gone}
            except (TableError, EnvironmentUnfit) as error:
                failed[name] = error.code
                traces += "\n\tat " in error.render()
            assert bytes_of(copy) == before, name
    assert traces == 0
    assert odd <= {"collations", "icebergCompatV2"}
    assert failed == {name: code for name, code in BROKEN.items() if name in names}
