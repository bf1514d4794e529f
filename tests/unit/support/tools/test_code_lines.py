"""``tools/code_lines.py``: what counts as code, and what moved."""

from __future__ import annotations

import subprocess

import pytest

from tools.code_lines import ROOT, Moved, code_lines, moved, other_lines, packages, pages, read_tree

COUNTED_BY_HAND = "d504f977", 480, 39_989
"""A commit of this repository, its modules and code lines as another script counted them."""

MODULE = '''"""What it is.

More of it.
"""

import os
from pathlib import (
    Path,
)

# A comment.
LIMIT = 3  # code, with a comment


class Point:
    """A point."""

    x: int
    """From the left."""

    def text(self) -> str:
        """Its text."""
        import json

        return """
        two lines
        """
'''
CODE = ["LIMIT", "class", "x: int", "def text", "return", "two lines", '"""']


def test_blanks_comments_docstrings_and_imports_are_no_code() -> None:
    lines = MODULE.splitlines()
    counted = [lines[number - 1].strip() for number in sorted(code_lines(MODULE))]
    assert len(counted) == len(CODE)
    assert all(line.startswith(start) for line, start in zip(counted, CODE, strict=True))


def test_packages_templates_and_pages_are_counted_apart() -> None:
    tree = {
        "maintainer/__init__.py": '"""Doc."""\nA = 1\n',
        "maintainer/report/html/page.py": "A = 1\n\nB = 2\n",
        "maintainer/report/html/page.html": "<p>\n\n</p>\n",
        "maintainer/py.typed": "",
        "tools/one.py": "A = 1\n",
        "docs/a.md": "three short words\n",
        "docs/start/b.md": "and two\n",
        "README.md": "not counted\n",
    }
    assert packages(tree) == {"maintainer": (1, 1), "report": (1, 2)}
    assert other_lines(tree) == {".html": 2}
    assert pages(tree) == (2, 5)


def test_moved_code_is_told_from_new_code() -> None:
    one = 'def one() -> int:\n    """Doc."""\n    return 1\n'
    two = "def two() -> int:\n    return 2\n"
    three = "def three() -> int:\n    return 3\n"
    before = {"maintainer/a.py": one + two + three}
    after = {
        "maintainer/a.py": three,
        "maintainer/b.py": one.replace("Doc.", "Another text."),
        "tools/c.py": two,
        "maintainer/d.py": "def four() -> int:\n    return 4\n",
    }
    assert moved(before, after) == Moved(within=2, out=2)
    assert moved(before, before) == Moved(within=0, out=0)


def test_a_known_commit_is_counted_as_before() -> None:
    commit, modules, lines = COUNTED_BY_HAND
    if subprocess.run(["git", "cat-file", "-e", commit], cwd=ROOT, capture_output=True).returncode:
        pytest.skip(f"{commit} is not in this copy of the repository")
    counted = packages(read_tree(commit)).values()
    assert (sum(count for count, _ in counted), sum(count for _, count in counted)) == (modules, lines)
