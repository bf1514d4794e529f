from __future__ import annotations

from pathlib import Path

from tools.frozen_assertions import assertions, differences, in_tree

BEFORE = """
import pytest
from maintainer.errors import TableError

class TestIt:
    def test_a(self):
        assert   f(1) == 2
        with pytest.raises(TableError, match="x"):
            f(3)
"""


def test_layout_and_imports_are_no_difference() -> None:
    moved = BEFORE.replace("from maintainer.errors", "from tests.support.product").replace("assert   f", "assert f")
    assert differences({"t.py": assertions(BEFORE)}, {"t.py": assertions(moved)}) == []


def test_each_assertion_that_went_or_came_is_a_line() -> None:
    weaker = BEFORE.replace("== 2", ">= 2").replace(', match="x"', "")
    assert differences({"t.py": assertions(BEFORE)}, {"t.py": assertions(weaker)}) == [
        "- t.py: TestIt.test_a: assert f(1) == 2",
        "- t.py: TestIt.test_a: with pytest.raises(TableError, match='x')",
        "+ t.py: TestIt.test_a: assert f(1) >= 2",
        "+ t.py: TestIt.test_a: with pytest.raises(TableError)",
    ]


def test_a_test_that_is_gone_is_a_difference() -> None:
    assert len(differences({"t.py": assertions(BEFORE)}, {})) == 2


def test_every_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / "tests/fault").mkdir(parents=True)
    (tmp_path / "tests/fault/test_t.py").write_text(BEFORE, encoding="utf-8")
    assert list(in_tree(tmp_path)) == ["tests/fault/test_t.py"]
