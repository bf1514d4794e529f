"""Cases in Markdown, `cases/*.md`: a policy and a table in, the plan out, as `maintainer why` prints it.

Each file has three blocks: `yaml policy`, `yaml table` (what a policy test may give, see docs/policies.md, with `now`
and with `updates` by others) and `text plan`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from maintainer.app.policy_tests import facts_of, now_of, record_of, with_made_up_sample
from maintainer.model.table.table_facts import Update
from maintainer.planning.plan_input import TableInput
from maintainer.planning.planner import plan_table
from maintainer.report.plan.plan_text import PlanTextOptions
from maintainer.report.plan.why_text import render_why
from maintainer.units import parse_duration
from tests.support.policies.projects import loaded
from tests.support.suites.golden_text import assert_golden

CASES = sorted((Path(__file__).parent / "cases").glob("*.md"))
BLOCKS = ["yaml policy", "yaml table", "text plan"]


def blocks_of(text: str) -> dict[str, str]:
    """The fenced blocks of a page by what stands behind their fence."""
    matches = re.findall(r"^```([^\n]+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert [name for name, _ in matches] == BLOCKS
    return dict(matches)


def planned(root: Path, policy_text: str, table_text: str) -> str:
    """The plan of the one policy for the table, as text."""
    project = loaded(root, {"maintainer.yml": "", "policies/t.yml": policy_text})
    assert [diagnostic.message for diagnostic in project.diagnostics if diagnostic.is_error] == []
    (source,) = project.tables
    policy = project.resolve_table(source.ref.identifier)
    given: dict[str, Any] = yaml.safe_load(table_text)
    now = now_of(given)
    now_ms = int(now.timestamp()) * 1000
    facts = with_made_up_sample(policy, facts_of(policy.table, given, now_ms))
    updates = tuple(
        Update(facts.version, now_ms - parse_duration(update["age"]) * 1000, update["operation"])
        for update in given.get("updates", ())
    )
    facts = replace(facts, updates=updates)
    today = datetime.fromtimestamp(now_ms / 1000, UTC).date()
    plan = plan_table(TableInput(policy, facts, record_of(given, now_ms), now_ms, today))
    return render_why(plan, options=PlanTextOptions(verbose=True))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_the_plan_is_the_one_on_the_page(case: Path, tmp_path: Path) -> None:
    page = case.read_text(encoding="utf-8")
    blocks = blocks_of(page)
    text = planned(tmp_path, blocks["yaml policy"], blocks["yaml table"])
    assert_golden(case, page.replace(f"```text plan\n{blocks['text plan']}```", f"```text plan\n{text}```"))


def test_there_are_cases() -> None:
    assert len(CASES) >= 8
