"""The layout of the package: folders stay small, and a file's name says where it is."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.support.policies.source_errors import modules, nodes
from tools.frozen_assertions import FOLDERS

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "maintainer"
MAX_ENTRIES = 13
MAX_LINES = 400


def folders(top: Path) -> list[Path]:
    return sorted({path.parent for path in top.rglob("*.py")})


def entries(folder: Path) -> list[str]:
    """Modules, data files and folders with content; not what Python makes, nor the marker of typed packages."""
    named = [path for path in folder.iterdir() if not path.name.startswith(("__", ".")) and path.name != "py.typed"]
    return [path.name for path in named if path.is_file() or has_files(path)]


def has_files(folder: Path) -> bool:
    return any(path.is_file() and path.parent.name != "__pycache__" for path in folder.rglob("*"))


@pytest.mark.parametrize("top", ["maintainer", "tests"])
def test_a_folder_has_at_most_thirteen_entries(top: str) -> None:
    crowded = {str(folder.relative_to(ROOT)): len(entries(folder)) for folder in folders(ROOT / top)}
    assert {folder: number for folder, number in crowded.items() if number > MAX_ENTRIES} == {}


@pytest.mark.parametrize("top", ["maintainer", "tests"])
def test_no_file_name_occurs_twice(top: str) -> None:
    places = defaultdict(list)
    for path in (ROOT / top).rglob("*.py"):
        if not path.name.startswith("__") and path.name != "conftest.py":
            places[path.name].append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}


@pytest.mark.parametrize("top", ["maintainer", "tests"])
def test_no_module_is_longer_than_four_hundred_lines(top: str) -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / top).rglob("*.py")}
    assert {str(path.relative_to(ROOT)): length for path, length in lengths.items() if length > MAX_LINES} == {}


MAX_FUNCTION_LINES = 70


def test_each_function_has_less_than_seventy_lines() -> None:
    lengths = {
        (path, node.name): (node.end_lineno or 0) - node.lineno + 1
        for path, tree in modules("maintainer")
        for node in nodes(tree)
        if isinstance(node, ast.FunctionDef)
    }
    assert {name: lines for name, lines in lengths.items() if lines >= MAX_FUNCTION_LINES} == {}


MAX_PARAMETERS = 7
PUBLIC = ("__init__.py", "app/auto_compact_hook.py", "app/python_api/")
"""What users call by keywords; commands take an argument for each of their options."""


def long_lists_of_parameters(tree: ast.Module, *, is_public: bool) -> set[str]:
    found = set()
    for node in nodes(tree):
        if isinstance(node, ast.FunctionDef):
            named = [one.arg for one in (*node.args.posonlyargs, *node.args.args) if one.arg not in ("self", "cls")]
            is_long = len(named) + (0 if is_public else len(node.args.kwonlyargs)) > MAX_PARAMETERS
            if is_long and not any("command" in ast.unparse(one) for one in node.decorator_list):
                found.add(node.name)
    return found


def test_no_function_has_more_than_seven_parameters() -> None:
    found = {}
    for path, tree in modules("maintainer"):
        name = path.removeprefix("maintainer/")
        if long := long_lists_of_parameters(tree, is_public=name.startswith(PUBLIC)):
            found[name] = long
    assert found == {}


def test_a_long_list_of_parameters_is_seen() -> None:
    eight = ", ".join("abcdefgh")
    assert long_lists_of_parameters(ast.parse(f"def f({eight}): ..."), is_public=True) == {"f"}
    assert long_lists_of_parameters(ast.parse(f"def f(a, *, {eight[3:]}, i): ..."), is_public=False) == {"f"}
    assert long_lists_of_parameters(ast.parse(f"def f(*, {eight}): ..."), is_public=True) == set()
    assert long_lists_of_parameters(ast.parse(f"@click.command()\ndef f({eight}): ..."), is_public=False) == set()


@pytest.mark.parametrize("folder", folders(PACKAGE), ids=lambda folder: str(folder.relative_to(ROOT)))
def test_each_folder_says_what_lives_in_it(folder: Path) -> None:
    init = folder / "__init__.py"
    assert init.is_file(), f"{folder} has no __init__.py"
    docstring = ast.get_docstring(ast.parse(init.read_text(encoding="utf-8")))
    assert docstring, f"{init} has no docstring"


@pytest.mark.parametrize("folder", FOLDERS)
def test_behaviour_tests_import_the_product_in_one_place(folder: str) -> None:
    found = {}
    for path in (ROOT / folder).rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        modules = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        modules |= {one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names}
        if named := {module for module in modules if module.startswith("maintainer.")}:
            found[str(path.relative_to(ROOT))] = named
    assert found == {}


STORES_OWN = ("model/table/store_kinds.py", "engine/store/", "delta/storage/")
"""Where stores are told apart; elsewhere ``store_kind`` is asked by the name of what it knows."""
BY_NAME = {
    "app/running/observers/lineage.py": "OpenLineage has names of its own for each kind of place",
    "policy/table_names.py": "how a path of this machine may be spelled",
}
SCHEMES = {"s3a", "s3n", "abfs", "abfss", "wasb", "wasbs", "gs", "hdfs", "viewfs"}
STORE_CLASSES = {"LocalFiles", "ObjectFiles", "HadoopFiles", "Fetched", "OnDisk"}


def asks_for_a_store(tree: ast.Module) -> set[str]:
    """The schemes that a module's code names or compares with, and the classes of stores that it does not call."""
    found: set[str] = set()
    calls = {id(node.func) for node in nodes(tree) if isinstance(node, ast.Call)}
    for node in nodes(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= {node.value} & {each for name in SCHEMES for each in (name, f"{name}:", f"{name}://")}
            found |= {node.value} & {"s3:", "s3://"}
        if isinstance(node, ast.Compare | ast.MatchValue):
            parts = {id(part) for text in ast.walk(node) if isinstance(text, ast.JoinedStr) for part in text.values}
            constants = (each for each in ast.walk(node) if isinstance(each, ast.Constant) and id(each) not in parts)
            found |= {each.value for each in constants if isinstance(each.value, str)} & {"s3", "file"}
        if isinstance(node, ast.Name | ast.Attribute) and id(node) not in calls:
            found |= {node.id if isinstance(node, ast.Name) else node.attr} & STORE_CLASSES
    return found


def test_only_the_modules_of_stores_ask_for_a_store_by_class_or_scheme() -> None:
    asking = {}
    for path, tree in modules("maintainer"):
        name = path.removeprefix("maintainer/")
        if not name.startswith(STORES_OWN) and (found := asks_for_a_store(tree)):
            asking[name] = found
    assert set(asking) == set(BY_NAME), asking


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ('x = scheme in ("s3a", "file")', {"s3a", "file"}),
        ('x = store_kind(uri).connector != "s3"', {"s3"}),
        ('x = uri.startswith("hdfs:")', {"hdfs:"}),
        ('match scheme:\n    case "s3": pass', {"s3"}),
        ("isinstance(files, (LocalFiles, int))", {"LocalFiles"}),
        ("x = type(files) is object_files.ObjectFiles", {"ObjectFiles"}),
        ("match files:\n    case HadoopFiles(): pass", {"HadoopFiles"}),
        ('"""Tables on gs and hdfs."""\nfiles = LocalFiles()', set()),
    ],
)
def test_a_question_for_a_store_is_seen(question: str, found: set[str]) -> None:
    assert asks_for_a_store(ast.parse(question)) == found


def test_no_process_is_forked_beneath_the_threads_of_a_store() -> None:
    forks = {"multiprocessing", "concurrent.futures.process", "fork", "forkpty", "ProcessPoolExecutor", "preexec_fn"}
    found = {}
    for path, tree in modules("maintainer"):
        names = {alias.name for node in nodes(tree) if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module or "" for node in nodes(tree) if isinstance(node, ast.ImportFrom)}
        names |= {node.attr for node in nodes(tree) if isinstance(node, ast.Attribute)}
        names |= {node.arg or "" for node in nodes(tree) if isinstance(node, ast.keyword)}
        if names & forks:
            found[path] = names & forks
    assert found == {}


IMPORTED_IN_A_TEXT = re.compile(r"^[ ]*from ((?:maintainer|tests|tools)[\w.]*) import ([\w, ]+)$", re.MULTILINE)
"""An import in a program that a test keeps as a text: neither mypy nor ruff reads it."""


def imported_in_texts(tree: ast.Module) -> set[tuple[str, str]]:
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    found = [match for text in texts for match in IMPORTED_IN_A_TEXT.finditer(text)]
    return {(match[1], name.split(" as ")[0].strip()) for match in found for name in match[2].split(",")}


def test_programs_inside_texts_import_what_there_is() -> None:
    paths = [path for top in ("tests", "benchmarks", "tools", "examples") for path in (ROOT / top).rglob("*.py")]
    named = {one for path in paths for one in imported_in_texts(ast.parse(path.read_text(encoding="utf-8")))}
    assert named
    assert {(module, name) for module, name in named if not is_there(module, name)} == set()


def is_there(module: str, name: str) -> bool:
    try:
        return hasattr(importlib.import_module(module), name) or bool(importlib.util.find_spec(f"{module}.{name}"))
    except ModuleNotFoundError:
        return False


def test_an_import_of_what_has_moved_is_seen() -> None:
    found = imported_in_texts(ast.parse(repr("from maintainer.units" + " import gone, printed_value as p")))
    assert {one for one in found if not is_there(*one)} == {("maintainer.units", "gone")}
    assert not is_there("maintainer.no_module", "x")
