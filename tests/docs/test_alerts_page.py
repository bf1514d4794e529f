"""docs/alerts.md and its Prometheus rules: metrics, states and exit codes are the program's, the script runs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from maintainer.errors import ExitCode
from maintainer.model.run.history_rows import StatusRow
from maintainer.policy.resolve.resolved import BUILT_IN
from maintainer.report.status_documents import STATES, status_prometheus

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "alerts.md").read_text(encoding="utf-8")
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((DOCS / "examples" / "prometheus_rules.yml").read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
]
FIGURES = {
    "small_files": 1, "num_files": 2, "size_bytes": 3, "version": 4, "last_optimize_at_ms": 5, "last_vacuum_at_ms": 6,
    "last_proof": "pass", "last_proof_at_ms": 7, "small_bytes": 8, "deleted_rows_ratio": 0.5, "owner": "team",
}  # fmt: skip


def samples(*tables: StatusRow) -> dict[str, set[str]]:
    """The names of the metrics that the program writes, each with its labels."""
    written: dict[str, set[str]] = {}
    for line in status_prometheus(tables, 1000).splitlines():
        if not line.startswith("#"):
            name, _, labels = line.partition("{")
            written.setdefault(name.split()[0], set()).update(re.findall(r'(\w+)="', labels))
    return written


TABLE = StatusRow("lake/t", "ok", **FIGURES)  # type: ignore[arg-type] # values of several types, by name
LEDGER = StatusRow("ledger", "ok", policy_file=BUILT_IN.file, **FIGURES)  # type: ignore[arg-type] # as above


def test_the_table_of_metrics_is_what_the_program_writes() -> None:
    named = re.findall(
        r"`(maintainer_(?:table|status)_\w+)`", PAGE[PAGE.index("| metric |") : PAGE.index("All are gauges")]
    )
    assert sorted(named) == sorted(samples(TABLE))
    assert samples(TABLE)["maintainer_table_files"] == {"table", "owner"}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_a_rule_asks_for_what_is_there(rule: dict[str, Any]) -> None:
    written = samples(TABLE, LEDGER)
    asked = set(re.findall(r"\bmaintainer_\w+", rule["expr"]))
    assert asked
    assert asked <= written.keys()
    states = [state for text in re.findall(r'state=~?"([^"]+)"', rule["expr"]) for state in text.split("|")]
    assert set(states) <= set(STATES)
    labels = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
    assert all(labels <= written[name] for name in asked)
    assert rule["expr"].count("(") == rule["expr"].count(")")
    assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"\d+[smhdw]", rule.get("for", "0s"))
    assert rule["annotations"]["summary"]


def test_every_rule_is_on_the_page() -> None:
    listed = re.findall(r"^\| `(Maintainer\w+)` \| .* \| (\w+) \|$", PAGE, flags=re.MULTILINE)
    assert listed == [(rule["alert"], rule["labels"]["severity"]) for rule in RULES]


@pytest.mark.parametrize("code", sorted(ExitCode))
def test_the_script_calls_whom_the_table_names(code: int) -> None:
    script = next(block for block in re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL) if "case $code" in block)
    stand_ins = f"maintainer() {{ return {code}; }}\npage() {{ echo page; }}\nnotify() {{ echo notify; }}\n"
    ran = subprocess.run(["sh", "-c", stand_ins + script], capture_output=True, text=True, timeout=30, check=False)
    called = {0: "", 5: "page", 130: "", 143: ""}.get(code, "notify")
    assert (ran.returncode, ran.stdout.strip(), ran.stderr) == (code, called, "")
