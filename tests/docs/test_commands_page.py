"""The exit codes in docs/commands.md are the program's, in its order, and its lines with jq answer what it says."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

from maintainer.errors import ExitCode
from maintainer.model.run.exit_codes import gravest

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "commands.md").read_text(encoding="utf-8")
LISTED = re.compile(r"^\| ([\d, ]+) \|", flags=re.MULTILINE)
SMALL = """\
version: 1
table: lake/orders
optimize: {maxFileSize: 128MiB}
vacuum: {retention: 8d}
limits: {timeout: 2h}
"""
LARGE = "version: 1\ntable: lake/events\noptimize: {maxFileSize: 1GiB}\nlimits: {timeout: 5h}\n"


def test_the_exit_codes_are_the_programs_in_their_order() -> None:
    listed = [int(code) for row in LISTED.findall(PAGE) for code in row.split(",")]
    assert sorted(listed) == sorted(ExitCode)
    order = re.search(r"the first of ([\d, ]+) is the code", PAGE)
    assert order is not None
    codes = [ExitCode(int(code)) for code in order[1].split(",")]
    assert {*codes, ExitCode.OK} == set(ExitCode)
    assert all(gravest(pair) is pair[0] for pair in itertools.combinations(codes, 2))


def test_no_other_page_has_an_order_of_its_own() -> None:
    pages = [page for page in DOCS.rglob("*.md") if page.name != "commands.md"]
    assert pages
    assert [page.name for page in pages if re.search(r"\b5, 70, 143\b", page.read_text(encoding="utf-8"))] == []


@pytest.mark.skipif(shutil.which("jq") is None, reason="the lines are for jq")
def test_each_line_with_jq_answers_what_the_page_says(tmp_path: Path) -> None:
    for name, text in (("orders", SMALL), ("events", LARGE)):
        policy = tmp_path / "policies" / f"{name}.yml"
        policy.parent.mkdir(exist_ok=True)
        policy.write_text(text, encoding="utf-8")
    for name, num_files in (("orders", 3), ("events", 1)):
        for _ in range(num_files):
            deltalake.write_deltalake(tmp_path / "lake" / name, pa.table({"id": [1]}), mode="append")
    lines = re.findall(r"^maintainer (.* \| jq .*)$", PAGE, flags=re.MULTILINE)
    answers = [_answer(line, tmp_path) for line in lines]
    assert answers == [["lake/orders"], ["8"], ["lake/orders"]]


def test_a_plan_has_the_words_and_the_numbers_of_the_same_keys(tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "orders.yml").write_text(SMALL, encoding="utf-8")
    for _ in range(2):
        deltalake.write_deltalake(tmp_path / "lake" / "orders", pa.table({"id": [1]}), mode="append")
    (table,) = json.loads("\n".join(_answer("plan -o json", tmp_path)))["tables"]
    assert table["policy"].keys() == dict(table["policy_values"]).keys()
    assert {
        key: (table["policy"][key], words)
        for key, words in table["policy_values"]
        if key in ("optimize.maxFileSize", "vacuum.retention", "vacuum.deleteUntracked", "optimize.lanes")
    } == {
        "optimize.maxFileSize": (128 << 20, "128 MiB"),
        "vacuum.retention": (8 * 86400, "8d"),
        "vacuum.deleteUntracked": (False, "false"),
        "optimize.lanes": (["copy", "local", "spark"], "copy, local, spark"),
    }


def _answer(line: str, folder: Path) -> list[str]:
    command = ["bash", "-euo", "pipefail", "-c", f"{sys.executable} -m maintainer {line}"]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.splitlines()
