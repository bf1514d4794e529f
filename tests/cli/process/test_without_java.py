"""What only reads tables by path needs no Java: here there is none. What needs one says so once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from tests.support.policies.projects import write_project
from tests.support.tables.sick_tables import make_table

LAKE = {"small": "lake/small", "day": "lake/by day", "checked": "lake/with checkpoint"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    lake = tmp_path / "lake"
    make_table(lake / "small", 4)
    rows = pa.table({"day": ["a b", "ü%41", None], "n": [1, 2, 3]})
    deltalake.write_deltalake(str(lake / "by day"), rows, partition_by=["day"])
    make_table(lake / "with checkpoint", 5)
    deltalake.DeltaTable(str(lake / "with checkpoint")).create_checkpoint()
    make_table(lake / "with checkpoint", 1)
    (lake / "no table").mkdir()
    policies = {f"policies/{name}.yml": f'table: "{path}"\nvacuum: {{retention: 7d}}\n' for name, path in LAKE.items()}
    write_project(tmp_path, policies)
    return tmp_path


def without_java(project: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key not in ("JAVA_HOME", "SPARK_HOME")}
    environment |= {
        "PATH": str(project / "nothing"),
        "JAVA_HOME": str(project / "nothing"),
        "PYTHONPATH": str(Path(__file__).parents[3]),
    }
    return subprocess.run(
        [sys.executable, "-m", "maintainer", "--project", str(project), *command],
        env=environment, cwd=project, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def forge(table: Path, **more: Any) -> None:
    """Add a commit with a protocol of its own."""
    log = table / "_delta_log"
    version = len(list(log.glob("*.json")))
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [], "writerFeatures": [], **more}
    (log / f"{version:020d}.json").write_text(json.dumps({"protocol": protocol}) + "\n", encoding="utf-8")


def test_commands_that_read_tables_by_path_start_no_java(project: Path) -> None:
    done = without_java(project, "plan", "-o", "json")
    assert done.returncode == 0, done.stderr
    assert "Java" not in done.stderr
    tables = {table["ref"]["identifier"]: table["observed"] for table in json.loads(done.stdout)["tables"]}
    for path in LAKE.values():
        known = deltalake.DeltaTable(str(project / path))
        assert tables[path]["version"] == known.version()
        assert tables[path]["num_files"] == len(known.file_uris())
    done = without_java(project, "status")
    assert (done.returncode, "Java" in done.stderr + done.stdout) == (0, False), (done.stdout, done.stderr)


def test_what_is_no_table_is_told_without_java(project: Path) -> None:
    for name in ("no table", "nowhere"):
        (project / "policies" / f"{name}.yml").write_text(f'version: 1\ntable: "lake/{name}"\n', encoding="utf-8")
    (project / "policies" / "named.yml").write_text("version: 1\ntable: some.name\n", encoding="utf-8")
    done = without_java(project, "plan", "-o", "json")
    problems = {table["ref"]["identifier"]: table["problem"] for table in json.loads(done.stdout)["tables"]}
    codes = {name: problem and problem["code"] for name, problem in problems.items()}
    no_problem = dict.fromkeys(LAKE.values())
    assert codes == {**no_problem, "lake/no table": "T402", "lake/nowhere": "T401", "some.name": "T401"}


def test_a_table_that_needs_java_says_so_once_and_for_the_run(project: Path) -> None:
    for path in LAKE.values():
        forge(project / path, readerFeatures=["fromTheFuture"], writerFeatures=["fromTheFuture"])
    done = without_java(project, "plan")
    assert (done.returncode, done.stderr.count("error[E601]")) == (2, 1), done.stderr


@pytest.mark.parametrize("settings", [{"HADOOP_CONF_DIR": "/etc/hadoop"}, {"PYSPARK_SUBMIT_ARGS": "--conf a=b"}])
def test_where_java_may_know_more_it_is_asked(
    project: Path, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    done = without_java(project, "plan")
    assert (done.returncode, done.stderr.count("error[E601]")) == (2, 1), done.stderr
