"""The names of a log's folder and files stand in one module of the package."""

from __future__ import annotations

import ast
import re

from tests.support.policies.source_errors import modules, nodes

KEEPER = "maintainer/model/table/log_names.py"
NAMED = re.compile(r"_delta_log|_sidecars|_last_check|(?<!delta)\.checkpoint\b|\.compacted|\.crc$|\\d\{20\}|^020d$")
NOT_OF_A_LOG = {("maintainer/delta/storage/local_files.py", ".crc"), ("maintainer/delta/storage/file_store.py", ".crc")}
"""Checksum files that Hadoop keeps beside any file."""


def names_in(tree: ast.Module) -> list[str]:
    """Texts in the code, without docstrings, that name something of a log."""
    docs = {id(node.value) for node in nodes(tree) if isinstance(node, ast.Expr)}
    texts = (node for node in nodes(tree) if isinstance(node, ast.Constant) and id(node) not in docs)
    return [text.value for text in texts if isinstance(text.value, str) and NAMED.search(text.value)]


def test_no_other_module_names_what_lies_in_a_log() -> None:
    found = {path: names_in(tree) for path, tree in modules("maintainer")}
    assert len(found.pop(KEEPER)) >= 8
    assert {(path, name) for path, names in found.items() for name in names} == NOT_OF_A_LOG


def test_a_name_is_found_wherever_it_stands() -> None:
    source = '"""_delta_log"""\nx = f"{root}/_delta_log/{version:020d}.json"'
    assert names_in(ast.parse(source)) == ["/_delta_log/", "020d"]
