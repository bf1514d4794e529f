"""List the assertions of the behaviour tests that differ from those of a commit.

The tests below `FOLDERS` say what the product does. When code moves, their imports may change (all of them stand in
`tests/support/product.py`), their assertions may not.

    python -m tools.frozen_assertions COMMIT
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RENAMED = {"receipt.difference.left.": "receipt.difference.untaken."}
"""Fields that have another name since then: their assertions are the same."""

FOLDERS = ("tests/fault", "tests/integration", "tests/contract", "tests/model", "tests/hostile")


def assertions(source: str) -> Counter[str]:
    """Count the assertions of a module, each as `function: text`, formatting left out: `assert` and `pytest.raises`."""
    found: Counter[str] = Counter()

    def collect(node: ast.AST, where: str) -> None:
        if isinstance(node, ast.Assert):
            found[f"{where}: {ast.unparse(node)}"] += 1
        if isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                text = ast.unparse(item.context_expr)
                if text.startswith(("pytest.raises", "pytest.warns")):
                    found[f"{where}: with {text}"] += 1
        for child in ast.iter_child_nodes(node):
            match child:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    collect(child, f"{where}.{name}".lstrip("."))
                case _:
                    collect(child, where)

    collect(ast.parse(source), "")
    return found


def at_commit(commit: str) -> dict[str, Counter[str]]:
    """Read the assertions of each behaviour test of a commit, by path."""
    names = _git("ls-tree", "-r", "--name-only", commit, *FOLDERS).splitlines()
    return {name: assertions(_renamed(_git("show", f"{commit}:{name}"))) for name in names if name.endswith(".py")}


def _renamed(source: str) -> str:
    for before, now in RENAMED.items():
        source = source.replace(before, now)
    return source


def in_tree(root: Path = ROOT) -> dict[str, Counter[str]]:
    """Read those of the working tree."""
    paths = (path for folder in FOLDERS for path in sorted((root / folder).rglob("*.py")))
    return {path.relative_to(root).as_posix(): assertions(path.read_text(encoding="utf-8")) for path in paths}


def differences(before: dict[str, Counter[str]], after: dict[str, Counter[str]]) -> list[str]:
    """Say what went and what came: a line each, `-` or `+`, path and assertion."""
    lines: list[str] = []
    for path in sorted(before.keys() | after.keys()):
        was, is_now = before.get(path, Counter()), after.get(path, Counter())
        lines += [f"- {path}: {one}" for one in (was - is_now).elements()]
        lines += [f"+ {path}: {one}" for one in (is_now - was).elements()]
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("commit")
    lines = differences(at_commit(parser.parse_args().commit), in_tree())
    print("\n".join([*lines, f"{len(lines)} assertions differ"]))
    return 1 if lines else 0


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
