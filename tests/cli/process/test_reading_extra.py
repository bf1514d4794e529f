"""`maintainer[read]` is enough to look at tables by path: here nothing else is installed, and there is no Java."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import deltalake
import pytest
from packaging.requirements import Requirement

from maintainer.delta.spark.installed_versions import package_folder
from tests.support.policies.projects import write_project
from tests.support.stores.s3_server import ACCESS_KEY, REGION, SECRET_KEY, s3_server
from tests.support.tables.sick_tables import make_table

ROOT = Path(__file__).parents[3]


def needed_by(name: str, extras: frozenset[str]) -> dict[str, metadata.Distribution]:
    """What a distribution needs, and what that needs, as their own metadata say."""
    found: dict[str, metadata.Distribution] = {}
    asked = [(name, extras)]
    while asked:
        name, extras = asked.pop()
        for line in metadata.distribution(name).requires or ():
            need = Requirement(line)
            if need.marker and not any(need.marker.evaluate({"extra": extra}) for extra in (*extras, "")):
                continue
            if need.name == "maintainer" or need.name not in found:
                asked.append((need.name, frozenset(need.extras)))
            found[need.name] = metadata.distribution(need.name)
    return found


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `maintainer` and what its base and the extra `read` name, and nothing else."""
    folder = tmp_path_factory.mktemp("site-packages")
    (folder / "maintainer").symlink_to(ROOT / "maintainer")
    for distribution in needed_by("maintainer", frozenset({"read"})).values():
        for file in distribution.files or ():
            top = file.parts[0]
            if top not in ("..", "maintainer") and not (folder / top).exists():
                (folder / top).symlink_to(Path(str(distribution.locate_file(top))))
    return folder


def run(installed: Path, project: Path, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command; ``-S`` keeps Python from its own packages."""
    environment = {"PATH": str(project / "nothing"), "PYTHONPATH": str(installed), "HOME": os.environ["HOME"], **more}
    return subprocess.run(
        [sys.executable, "-S", "-m", "maintainer", "--project", str(project), *command],
        env=environment, cwd=project, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def test_spark_is_not_there(installed: Path) -> None:
    assert package_folder("pyspark") is not None
    for module in ("pyspark", "delta", "duckdb", "great_expectations", "numpy"):
        assert not (installed / module).exists()
    assert (installed / "pyarrow").is_dir()


def test_tables_of_a_disk_are_looked_at_and_not_changed(installed: Path, tmp_path: Path) -> None:
    table = tmp_path / "lake" / "orders"
    make_table(table, 12)
    deltalake.DeltaTable(str(table)).create_checkpoint()
    make_table(table, 1)
    write_project(tmp_path, {"policies/orders.yml": "table: lake/orders\noptimize: {}\n"})
    done = run(installed, tmp_path, "plan", "-o", "json")
    assert done.returncode == 0, done.stderr
    (planned,) = json.loads(done.stdout)["tables"]
    known = deltalake.DeltaTable(str(table))
    assert (planned["observed"]["version"], planned["observed"]["num_files"]) == (
        known.version(),
        len(known.file_uris()),
    )
    for command in (("status",), ("why", "lake/orders"), ("history", "lake/orders"), ("inventory", "lake")):
        done = run(installed, tmp_path, *command)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
    done = run(installed, tmp_path, "apply", "--yes")
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert "error[E604]: Spark or Delta is not installed in this Python" in done.stderr
    assert deltalake.DeltaTable(str(table)).version() == known.version()


@pytest.mark.parametrize(
    ("roots", "policy"),
    [("", "table: s3://lake/orders"), ("roots: ['s3://lake/']\n", "match: {tables: ['*']}\nmanage: true")],
    ids=["named", "found in the bucket"],
)
def test_tables_of_a_store_are_looked_at(installed: Path, tmp_path: Path, roots: str, policy: str) -> None:
    settings = """\
spark:
  conf:
    spark.hadoop.fs.s3a.endpoint: {url}
    spark.hadoop.fs.s3a.endpoint.region: {region}
    spark.hadoop.fs.s3a.path.style.access: true
    spark.hadoop.fs.s3a.access.key: ${{env:S3_KEY}}
    spark.hadoop.fs.s3a.secret.key: ${{env:S3_SECRET}}
"""
    make_table(tmp_path / "orders", 12)
    with s3_server("lake") as server:
        options = {
            "AWS_ENDPOINT_URL": server.own_url, "AWS_ALLOW_HTTP": "true", "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        }  # fmt: skip
        rows = deltalake.DeltaTable(str(tmp_path / "orders")).to_pyarrow_table()
        for _ in range(3):
            deltalake.write_deltalake("s3://lake/orders", rows, mode="append", storage_options=options)
        files = {
            "maintainer.yml": roots + settings.format(url=server.url, region=REGION),
            "policies/orders.yml": f"{policy}\noptimize: {{when: {{minSmallFiles: 2}}}}\n",
        }
        write_project(tmp_path / "project", files)
        done = run(installed, tmp_path / "project", "plan", "-o", "json", S3_KEY=ACCESS_KEY, S3_SECRET=SECRET_KEY)
    assert done.returncode == 0, done.stderr
    (planned,) = json.loads(done.stdout)["tables"]
    assert (planned["observed"]["version"], planned["observed"]["num_files"]) == (2, 3)
    assert "Java" not in done.stdout + done.stderr
