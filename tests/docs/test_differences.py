"""What a parity test calls a difference on purpose stands in the docs, and nothing else does."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "differences-from-optimize.md").read_text(encoding="utf-8")


def behaviours() -> dict[str, bool]:
    """Each behaviour that a parity test is named after, and whether one of its tests differs on purpose."""
    behaviour_tests: dict[str, bool] = {}
    for file in sorted((ROOT / "tests" / "integration" / "parity").glob("test_parity_*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            match = re.match(r"test_((?:[a-j]\d+_)+)", node.name) if isinstance(node, ast.FunctionDef) else None
            if match is not None and isinstance(node, ast.FunctionDef):
                differs = (ast.get_docstring(node) or "").startswith("On purpose:")
                for number in match[1].rstrip("_").upper().split("_"):
                    behaviour_tests[number] = behaviour_tests.get(number, False) or differs
    return behaviour_tests


def test_every_difference_on_purpose_is_documented_and_tested() -> None:
    rows = re.findall(r"^\| ([A-J]\d+) \|", TEXT[TEXT.index("## By behaviour") :], re.MULTILINE)
    assert sorted(rows) == sorted(number for number, differs in behaviours().items() if differs)
    assert len(rows) == len(set(rows))


def test_every_parity_test_is_named_after_a_behaviour() -> None:
    for file in (ROOT / "tests" / "integration" / "parity").glob("test_parity_*.py"):
        names = re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
        assert names, file
        assert [name for name in names if not re.match(r"test_[a-j]\d+_", name)] == [], file
