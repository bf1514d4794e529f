"""A name needs no context, and a docstring says what the signature does not."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.support.policies.source_errors import modules, nodes

RULES = (Path(__file__).resolve().parents[3] / "CONTRIBUTING.md").read_text(encoding="utf-8")
NO_NAMES = frozenset(re.findall(r"`(\w+)`", RULES.partition("is no name by itself:")[2].partition(";")[0]))
FILLERS = frozenset({"a", "all", "an", "as", "is", "it", "its", "of", "return", "the", "their", "whether", "yield"})


def context_names(tree: ast.Module) -> Counter[str]:
    """The functions, classes, parameters and fields that have a word of the list as their name."""
    return Counter(word for name in defined_names(tree) for word in [name.strip("_").lower()] if word in NO_NAMES)


def defined_names(tree: ast.Module) -> Iterator[str]:
    for node in nodes(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                yield name
        if isinstance(node, ast.ClassDef):
            fields = (one.target for one in node.body if isinstance(one, ast.AnnAssign))
            yield from (field.id for field in fields if isinstance(field, ast.Name))


def empty_docstrings(tree: ast.Module) -> list[str]:
    """The functions whose docstring has three words or fewer, or only those of the name."""
    found = []
    for node in nodes(tree):
        if isinstance(node, ast.FunctionDef) and (text := ast.get_docstring(node)):
            said = set(re.findall("[a-z]+", text.lower())) - FILLERS
            if len(text.split()) <= 3 or said <= set(node.name.lower().split("_")):
                found.append(f"{node.name}: {text}")
    return found


def test_no_name_needs_its_whole_context() -> None:
    found = {path: names for path, tree in modules("maintainer") if (names := context_names(tree))}
    assert found == {}


def test_words_that_no_name_has_any_more_do_not_come_back() -> None:
    gone = {"crew", "hire"}
    assert gone < NO_NAMES
    names = {name for _, tree in modules("maintainer") for name in defined_names(tree)}
    assert {name for name in names if not gone.isdisjoint(name.lower().split("_"))} == set()


def test_one_name_is_one_class() -> None:
    """A plan and a project are to users of the Python API what they are within; no other class shares its name."""
    classes = Counter(
        node.name for _, tree in modules("maintainer") for node in tree.body if isinstance(node, ast.ClassDef)
    )
    assert {name for name, number in classes.items() if number > 1} == {"Plan", "Project"}


def test_a_name_of_the_list_is_seen() -> None:
    source = "class Fate:\n    own: int\n\n    def _look(self, turn): left = 1"
    assert context_names(ast.parse(source)) == {"fate": 1, "own": 1, "look": 1, "turn": 1}


def test_a_docstring_says_more_than_its_function_is_called() -> None:
    found = {path: empty_docstrings(tree) for path, tree in modules("maintainer")}
    assert {path: texts for path, texts in found.items() if texts} == {}


def test_a_docstring_that_says_nothing_is_seen() -> None:
    source = 'def f():\n    """Write it."""\n\ndef plan_of_table():\n    """Return the plan of the table."""'
    assert empty_docstrings(ast.parse(source)) == ["f: Write it.", "plan_of_table: Return the plan of the table."]
