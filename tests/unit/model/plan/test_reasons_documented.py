"""Every reason of a plan has a section in ``docs/reasons.md``, is given somewhere, and the page knows no other."""

from __future__ import annotations

import ast
import re

from maintainer.model.plan.reasons import ReasonCode
from tests.support.policies.source_errors import ROOT, modules, nodes

PAGE = (ROOT / "docs" / "reasons.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^### (\w+)$(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)


def test_every_reason_has_a_section_and_the_page_knows_no_other() -> None:
    sections = SECTION.findall(PAGE)
    assert sorted(name for name, _ in sections) == sorted(code.value for code in ReasonCode)
    for name, text in sections:
        assert len(text.split()) >= 8, name


def test_every_reason_is_given_by_planning() -> None:
    given = {
        node.attr
        for _, tree in modules("maintainer/planning")
        for node in nodes(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ReasonCode"
    }
    assert given == {code.name for code in ReasonCode}


def test_policy_keys_and_options_on_the_page_exist() -> None:
    keys = set(re.findall(r"`((?:optimize|vacuum|limits)\.\w+)`", PAGE))
    schema = (ROOT / "schemas" / "policy.schema.json").read_text(encoding="utf-8")
    assert len(keys) > 8
    assert [key for key in keys if f'"{key.partition(".")[2]}": {{' not in schema] == []
    options = set(re.findall(r"`(--[a-z-]+)`", PAGE))
    commands = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "maintainer" / "cli").rglob("*.py"))
    assert options
    assert [option for option in options if f'"{option}"' not in commands] == []
