"""The author's commands, word for word: what a person types, what stdout and stderr say, and the exit code.

Each file in ``transcripts/`` was read by a person and is compared exactly. ``$`` begins a command line (with
environment variables before it, as a shell takes them), ``! `` a line of stderr, ``[n]`` is the exit code. Only
times and digests are replaced.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from maintainer.cli.main import run
from maintainer.cli.setup_commands import UNKNOWN
from tests.support.policies.projects import write_project
from tests.support.suites.golden_text import assert_golden

FOLDER = Path(__file__).parent / "transcripts"

GOOD = {
    "maintainer.yml": """\
        version: 1
        defaults:
          verify: {rowCount: scan}
          limits: {maxBytes: 500GiB}
        timezone: Europe/Berlin
        environments:
          dev: {overrides: {limits: {maxBytes: 10GiB}}}
    """,
    "policies/_profiles/big.yml": "optimize: {maxFileSize: 1GiB, maxThreads: 8}\n",
    "policies/_fleet/sales.yml": """\
        version: 1
        match: {tables: ["sales.*"]}
        priority: 10
        owner: team-sales
        optimize: {maxFileSize: 512MiB}
        vacuum: {retention: 14d, every: 7d}
    """,
    "policies/sales/orders.yml": """\
        version: 1
        table: sales.orders
        tags: [nightly, tier1]
        extends: [big]
        optimize:
          minFileSize: 64MiB
          zorder: {columns: [customer_id, product_id], mode: full}
          where: "order_day >= '2026-01-01'"
        vacuum: {retention: 30d}
        window:
          - {days: [mon, tue], from: 22:00, to: 04:00}
    """,
    "policies/sales/items.yml": "table: sales.items\n",
    "policies/events.yml": "table: ./lake/events\nowner: team-web\ntags: [nightly]\n",
}

BROKEN = {
    **GOOD,
    "policies/sales/orders.yml": """\
        version: 1
        table: sales.orders
        optimize:
          minFileSzie: 64MiB
          maxFileSize: 256MB
        autoCompact: yes
        vacuum:
          retention: 7
    """,
    "policies/sales/items.yml": "table: sales.items\nextends: [bgi]\nowner: a\nowner: b\n",
    "policies/again.yml": """\
        version: 1
        table: Sales.Items
        verify: {expectations: [{type: expect_column_values_to_be_nul, column: id}]}
    """,
}

PROJECTS = {"good": GOOD, "broken": BROKEN, "empty": {}}


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "GITHUB_WORKSPACE", "GITHUB_STEP_SUMMARY", "TERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("maintainer.cli.setup_commands.requirement_line", lambda: UNKNOWN)


def played(command: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Run one command line and return its part of the transcript."""
    words = shlex.split(command)
    environment = [word.partition("=") for word in words[: words.index("maintainer")]]
    with pytest.MonkeyPatch.context() as patch:
        for name, _, value in environment:
            patch.setenv(name, value)
        code = run(words[words.index("maintainer") + 1 :])
    printed = capsys.readouterr()
    lines = [
        f"$ {command}",
        *printed.out.splitlines(),
        *(f"! {line}" for line in printed.err.splitlines()),
        f"[{code}]",
    ]
    return [settled(line) for line in lines]


def settled(line: str) -> str:
    """Replace what differs from run to run, and digests, which every new key with a default changes."""
    line = re.sub(r"sha256:[0-9a-f]{64}", "sha256:<digest>", line)
    return re.sub(r"\(\d+\.\d\d s\)", "(0.00 s)", line).replace("\x1b", "␛")


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.txt")))
def test_the_transcript_is_what_is_said(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    head, *expected = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    root = write_project(tmp_path, PROJECTS[head.removeprefix("# project: ")])
    monkeypatch.chdir(root)
    said: list[str] = []
    for line in expected:
        if line.startswith("$ cat "):
            text = (root / line.removeprefix("$ cat ")).read_text(encoding="utf-8")
            said += [line, *map(settled, text.splitlines())]
        elif line.startswith("$ "):
            said += played(line.removeprefix("$ "), capsys)
    lines = [head, *(line.replace(str(root), "/project") for line in said)]
    assert_golden(FOLDER / name, "".join(f"{line}\n" for line in lines))


def test_there_are_transcripts() -> None:
    assert len(list(FOLDER.glob("*.txt"))) >= 8
