"""Malformed policies: each is refused by name, at its place, with a way out, at once, and nothing else happens."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.malformed_policies import GOOD, MALFORMED, MalformedPolicy

ROOT = Path(__file__).resolve().parents[2]
MAX_SECONDS = 2.0
MAX_PEAK_KIB = 200 * 1024
CANARY_TEXT = "nothing may touch this file\n"
HEADING = re.compile(r"^error\[([YP][0-9]{3})\]: \S.*$", re.MULTILINE)


@dataclass(frozen=True)
class Refusals:
    """What one process said to all files, and what was there when it had ended."""

    by_name: dict[str, dict[str, Any]]
    canary: Path
    java_started: Path


def _fake_java(folder: Path, started: Path) -> Path:
    """Make a Java that only says that it was started."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\ntouch '{started}'\nexit 1\n", encoding="utf-8")
    program.chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def refusals(tmp_path_factory: pytest.TempPathFactory) -> Refusals:
    root = tmp_path_factory.mktemp("malformed")
    canary, started = root / "canary", root / "java-started"
    canary.write_text(CANARY_TEXT, encoding="utf-8")
    for number, policy in enumerate(MALFORMED):
        policy.write(root / f"{number:03}", canary)
    java = _fake_java(root / "java", started)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.hostile.refusal_process",
            *(str(root / f"{n:03}") for n in range(len(MALFORMED))),
        ],
        cwd=ROOT,
        env={
            "PATH": f"{java}/bin:{os.environ['PATH']}",
            "JAVA_HOME": str(java),
            "PYTHONPATH": str(ROOT),
            "HOME": str(root),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=True,
    )
    answers = json.loads(done.stdout)
    names = [policy.name for policy in MALFORMED]
    return Refusals(dict(zip(names, answers, strict=True)), canary, started)


def test_there_are_enough_and_no_two_are_the_same() -> None:
    assert len(MALFORMED) >= 60
    assert len({policy.name for policy in MALFORMED}) == len(MALFORMED)
    contents = [policy.content for policy in MALFORMED if isinstance(policy.content, bytes)]
    assert len(set(contents)) == len(contents)


@pytest.mark.parametrize("policy", MALFORMED, ids=lambda policy: policy.name)
def test_it_is_refused_by_name_at_its_place_with_a_way_out(policy: MalformedPolicy, refusals: Refusals) -> None:
    answer = refusals.by_name[policy.name]
    text = answer["err"]
    assert answer["exit_code"] == 2, text
    assert answer["out"] == ""
    codes = set(HEADING.findall(text))
    assert codes & policy.codes, text
    assert re.search(r"^ *--> policies/(t\.yml|sub):[1-9][0-9]*:[1-9][0-9]*$", text, re.MULTILINE), text
    # Every finding says what to do, and so does the last line about the run.
    findings = re.split(r"^(?=error\[|warning\[)", text, flags=re.MULTILINE)[1:]
    assert all("= help: " in finding for finding in findings), text
    assert "error[E616]" in findings[-1]
    assert "Traceback" not in text
    assert all(character.isprintable() for character in text.replace("\n", "")), text
    assert len(text) < 100_000


@pytest.mark.parametrize("policy", MALFORMED, ids=lambda policy: policy.name)
def test_it_costs_little(policy: MalformedPolicy, refusals: Refusals) -> None:
    """Processor seconds, and the peak of the process up to then, which includes Python and all that was imported."""
    answer = refusals.by_name[policy.name]
    assert answer["seconds"] < MAX_SECONDS
    assert answer["peak_kib"] < MAX_PEAK_KIB


def test_nothing_was_started_run_or_touched(refusals: Refusals) -> None:
    assert not any(answer["spark_loaded"] for answer in refusals.by_name.values())
    assert not refusals.java_started.exists()
    assert refusals.canary.read_text(encoding="utf-8") == CANARY_TEXT
    left = {
        path.name for number in range(len(MALFORMED)) for path in (refusals.canary.parent / f"{number:03}").iterdir()
    }
    assert left == {"maintainer.yml", "policies", "outside"}


def test_the_trap_snaps_shut_on_a_java_that_is_started(tmp_path: Path) -> None:
    """The same project with a good policy goes on to Java where its settings may matter, and the fake one says so."""
    started = tmp_path / "java-started"
    java = _fake_java(tmp_path / "java", started)
    table = tmp_path / "lake" / "_delta_log"
    table.mkdir(parents=True)
    policy = MalformedPolicy("good", GOOD.replace("sales.orders", str(tmp_path / "lake")).encode(), frozenset())
    policy.write(tmp_path / "project", tmp_path / "canary")
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.refusal_process", str(tmp_path / "project")],
        cwd=ROOT,
        env={
            "PATH": f"{java}/bin:{os.environ['PATH']}",
            "JAVA_HOME": str(java),
            "PYTHONPATH": str(ROOT),
            "HADOOP_CONF_DIR": str(tmp_path),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    (answer,) = json.loads(done.stdout)
    assert answer["exit_code"] != 0
    assert not HEADING.findall(answer["err"]), answer["err"]
    assert started.exists(), answer["err"]
