"""Commands that need no Spark must not pay for it: counted in modules, not in seconds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"pyspark", "py4j", "delta", "great_expectations", "pandas", "numpy", "scipy", "rich", "pygments", "pydantic"}
MAX_MODULES = 700
"""``validate`` needs about 500 modules today, Great Expectations alone 2,600: a heavy import cannot hide below this."""

PROBE = """
import json, sys
from maintainer.cli.main import run
code = run(json.loads(sys.argv[1]))
print(json.dumps({"code": code, "modules": sorted(sys.modules)}), file=sys.stderr)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    policies = tmp_path / "policies"
    policies.mkdir()
    (policies / "orders.yaml").write_text("version: 1\ntable: sales.orders\nowner: team-sales\n", encoding="utf-8")
    return tmp_path


def run_probe(project: Path, *args: str) -> tuple[int, set[str], str]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(["--project", str(project), *args])],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=project,
        check=True,
    )
    last = json.loads(done.stderr.splitlines()[-1])
    return last["code"], set(last["modules"]), done.stdout


@pytest.mark.parametrize(
    "args",
    [
        ["--help"],
        ["validate"],
        ["explain", "sales.orders"],
        ["list"],
        ["schema", "vacuum.retention"],
        ["history"],
        ["completion", "bash"],
        ["version"],
    ],
    ids=lambda args: args[0],
)
def test_a_command_without_spark_imports_nothing_heavy(project: Path, args: list[str]) -> None:
    code, modules, stdout = run_probe(project, *args)
    assert code == 0
    assert stdout.strip()
    roots = {name.partition(".")[0] for name in modules}
    assert roots & HEAVY == set()
    assert len(modules) < MAX_MODULES


def test_the_probe_sees_heavy_imports(project: Path) -> None:
    """The test above can fail: the same probe finds pyspark where it is imported."""
    done = subprocess.run(
        [sys.executable, "-c", "import pyspark, sys; print('pyspark' in sys.modules)"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.strip() == "True"
