"""The names of a log's folder and files stand in one module of the package."""

from __future__ import annotations

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).parents[3] / "maintainer"
KEEPER = PACKAGE / "model" / "table" / "log_names.py"
NAMED = re.compile(r"_delta_log|_sidecars|_last_check|(?<!delta)\.checkpoint\b|\.compacted|\.crc$|\\d\{20\}|^020d$")
NOT_OF_A_LOG = {("delta/storage/local_files.py", ".crc"), ("delta/storage/file_store.py", ".crc")}
"""Checksum files that Hadoop keeps beside any file."""


def names_in(source: str) -> list[str]:
    """Texts in the code, without docstrings, that name something of a log."""
    tree = ast.parse(source)
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docs)
    return [text.value for text in texts if isinstance(text.value, str) and NAMED.search(text.value)]


def test_no_other_module_names_what_lies_in_a_log() -> None:
    found = {
        (str(path.relative_to(PACKAGE)), name)
        for path in PACKAGE.rglob("*.py")
        if path != KEEPER
        for name in names_in(path.read_text())
    }
    assert found == NOT_OF_A_LOG
    assert len(names_in(KEEPER.read_text())) >= 8


def test_a_name_is_found_wherever_it_stands() -> None:
    assert names_in('"""_delta_log"""\nx = f"{root}/_delta_log/{version:020d}.json"') == ["/_delta_log/", "020d"]
