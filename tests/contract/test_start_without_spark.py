"""What only reads logs runs in a JVM without a Spark session, and reads the same as with one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pytest

from tests.support.policies.projects import write_project
from tests.support.suites.package_path import PACKAGE_PATH
from tests.support.tables.sick_tables import make_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.long]

SCRIPT = """
import json, sys
import maintainer.delta.spark.jvm_launch as launch
import maintainer.delta.spark.spark_session as sessions
from maintainer.cli.main import run
from maintainer.delta.engine.table_engine import DeltaEngine
from maintainer.engine.session_options import SessionOptions
from maintainer.model.table.commit_records import CommitsWanted
from maintainer.model.table.table_facts import TableRef

started = []
new_spark = launch.start_spark
def noted(*arguments):
    started.append(True)
    return new_spark(*arguments)
launch.start_spark = noted

project, commands, paths = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3:]
answer = {"codes": {}, "started": {}}
def ran(*command):
    before = len(started)
    name = " ".join(command if command[0] == "verify" else command[:1])
    answer["codes"][name] = run(["--project", project, *command])
    answer["started"][name] = len(started) - before

for command in commands:
    ran(*command)

def facts(lease):
    with DeltaEngine(lease).worker("reads") as worker:
        read = [worker.reader.facts(TableRef(path)) for path in paths]
        return read, [worker.reader.commits(TableRef(path), CommitsWanted(5)) for path in paths]

with sessions.open_session(SessionOptions(master="local[1]"), when_needed=True) as lease:
    before = facts(lease)
    answer["unstarted"] = not lease.is_started
    lease.start()
    answer["same"] = before == facts(lease)
    answer["files"] = [len(facts_before.files) for facts_before in before[0]]
print("ANSWER " + json.dumps(answer))
"""


FEW = (("plan",), ("apply", "--yes"), ("verify", "lake/mapped"))
MORE = (("why", "lake/small"), ("inventory", "lake"), *FEW, ("status",), ("verify", "lake/small"))


@pytest.mark.parametrize("commands", [pytest.param(FEW, id="few"), pytest.param(MORE, id="more")])
def test_what_only_reads_starts_no_session_and_reads_what_one_reads(
    spark: SparkSession, tmp_path: Path, commands: tuple[tuple[str, ...], ...]
) -> None:
    lake = tmp_path / "lake"
    make_table(lake / "small", 4)
    deltalake.write_deltalake(
        str(lake / "by day"),
        pa.table({"day": ["a b", "ü%41", None], "n": [1, 2, 3]}),
        partition_by=["day"],
        configuration={"delta.checkpointInterval": "3"},
    )
    (lake / "mapped").parent.mkdir(exist_ok=True)
    mapped = spark.range(40).repartition(4).write.format("delta").option("delta.columnMapping.mode", "name")
    mapped.option("delta.enableDeletionVectors", "true").save(str(lake / "mapped"))
    spark.sql(f"DELETE FROM delta.`{lake / 'mapped'}` WHERE id % 7 = 0")
    policies = {f"policies/{name}.yml": f'table: "lake/{path}"\nvacuum: {{retention: 7d}}\n'
                for name, path in (("small", "small"), ("day", "by day"), ("mapped", "mapped"))}  # fmt: skip
    write_project(tmp_path, policies)
    rows = sorted(deltalake.DeltaTable(str(lake / "small")).to_pyarrow_table().column(0).to_pylist())
    answer = answer_of(tmp_path, commands, lake / "small", lake / "by day", lake / "mapped")
    assert len(answer["codes"]) == len(commands)
    assert set(answer["codes"].values()) == {0}
    assert answer["started"] == {name: int(name == "apply") for name in answer["codes"]}
    assert (answer["unstarted"], answer["same"]) == (True, True)
    small = deltalake.DeltaTable(str(lake / "small"))
    assert answer["files"][0] == len(small.file_uris()) == 1
    assert sorted(small.to_pyarrow_table().column(0).to_pylist()) == rows


def answer_of(project: Path, commands: tuple[tuple[str, ...], ...], *paths: Path) -> dict[str, Any]:
    """Run the script in a process of its own, which has no session."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(project), json.dumps(commands), *map(str, paths)],
        cwd=project,
        env={**os.environ, "PYTHONPATH": PACKAGE_PATH},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    assert lines, done.stdout + done.stderr
    answer: dict[str, Any] = json.loads(lines[0].removeprefix("ANSWER "))
    return answer
