"""The small install: without pyspark every command either works or says in one error what to install."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from maintainer.delta import jvm
from tests.support.policies.projects import write_project

ROOT = Path(__file__).resolve().parents[3]

WITHOUT = """
import contextlib, io, json, sys
from importlib import metadata

GONE = ("pyspark", "delta", "py4j", "great_expectations", "pandas", "numpy", "rich", "pyarrow", "obstore")
known = metadata.version

class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in GONE:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

def version(name):
    if name in ("pyspark", "delta-spark", "great-expectations"):
        raise metadata.PackageNotFoundError(name)
    return known(name)

sys.meta_path.insert(0, Gone())
metadata.version = version
from maintainer.cli.main import run
ended = {}
for command in sys.argv[1:]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        ended[command] = [run(command.split())]
    ended[command] += [out.getvalue(), err.getvalue()]
print(json.dumps(ended))
"""
"""A Python in which Spark, Delta and Great Expectations are not installed, whatever this one has."""


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def without_spark(root: Path, *commands: str) -> dict[str, Ended]:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *commands],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=True,
    )
    return {command: Ended(*ended) for command, ended in json.loads(done.stdout).items()}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_project(
        tmp_path, {"policies/orders.yml": "table: sales.orders\n", "maintainer.yml": "timezone: UTC\n"}
    )


def test_a_command_that_needs_spark_says_what_to_install(root: Path) -> None:
    commands = ("plan", "apply --yes", "status", "why sales.orders")
    said = [
        "error[E604]: Spark or Delta is not installed in this Python",
        "   = found: pyspark none, delta-spark none",
        f"   = allowed: {jvm.tested_pairs()}",
        "   = help: pip install 'maintainer[spark]'",
    ]
    ended = without_spark(root, *commands)
    assert {command: (done.code, done.out, done.err.splitlines()) for command, done in ended.items()} == dict.fromkeys(
        commands, (2, "", said)
    )


def test_an_author_needs_none_of_it(root: Path) -> None:
    commands = (
        "validate --strict",
        "validate -o json",
        "explain sales.orders",
        "list",
        "schema",
        "schema vacuum.retention",
        "history",
        "init new",
        "completion bash",
        "version",
    )
    ended = without_spark(root, *commands)
    assert {command: (done.code, "error" in done.err) for command, done in ended.items()} == dict.fromkeys(
        commands, (0, False)
    )


def test_doctor_names_what_is_missing(root: Path) -> None:
    (done,) = without_spark(root, "doctor --no-spark").values()
    assert done.code == 1
    lines = [line for line in done.out.splitlines() if "pip install" in line]
    assert [line.strip() for line in lines] == ["fix: pip install 'maintainer[spark]'"] * 2


def test_the_small_install_holds_no_engine() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    block = re.search(r"^dependencies = \[\n(.*?)^\]", text, flags=re.MULTILINE | re.DOTALL)
    assert block is not None
    names = set(re.findall(r'^    "([a-z0-9-]+)', block.group(1), flags=re.MULTILINE))
    assert names == {"pyyaml", "jsonschema", "pydantic", "click", "jinja2", "tzdata"}
