"""docs/safe-vacuum.md: each of the threats names a test that is there and compares whole trees."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "safe-vacuum.md").read_text(encoding="utf-8")
COMPARED = ("vacuum(", "assert_only(")
"""The helpers of the tests that compare the hash of every file before and after."""


def test_every_threat_has_its_test() -> None:
    rows = re.findall(r"^\| A(\d+) \|.*\| `(Test\w+)` \|$", PAGE, flags=re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 23))
    assert all(name.startswith(f"TestA{int(number):02}") for number, name in rows)
    classes: dict[str, str] = {}
    for file in (ROOT / "tests" / "unit" / "delta" / "vacuum").glob("test_threats_*.py"):
        text = file.read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef):
                classes[node.name] = ast.get_source_segment(text, node) or ""
    for _, name in rows:
        assert "def test_" in classes[name], name
        assert any(helper in classes[name] for helper in COMPARED), name
