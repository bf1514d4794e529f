"""How much code ``maintainer/`` has, by package: ``python -m tools.code_lines [COMMIT] [--since COMMIT]``.

A code line is a line of a module that is not blank, not only a comment, and no part of a docstring or an import. What
is not Python (templates, YAML, Java) is counted apart, and so are the modules and the words of ``docs/``. With
``--since``, code that only moved is told from code that was written or removed.
"""

from __future__ import annotations

import argparse
import ast
import io
import subprocess
import tarfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "maintainer"
PYTHON, PAGE = ".py", ".md"
IMAGES = (".png", ".svg")

Tree = dict[str, str]


@dataclass(frozen=True)
class Moved:
    """Code lines of whole definitions whose code is now in another module."""

    within: int
    """From one module of the package to another."""
    out: int
    """Out of the package: to tools, tests, benchmarks or examples."""


def read_tree(commit: str | None) -> Tree:
    """The repository's text files by path: of a commit, or of the working tree."""
    if commit is None:
        listed = _git("ls-files", "-z", "--cached", "--others", "--exclude-standard").decode().split("\0")
        found = ((name, ROOT / name) for name in listed if name and PurePosixPath(name).suffix not in IMAGES)
        return {name: path.read_text(encoding="utf-8") for name, path in found if path.is_file()}
    with tarfile.open(fileobj=io.BytesIO(_git("archive", "--format=tar", commit))) as archive:
        members = [one for one in archive if one.isfile() and PurePosixPath(one.name).suffix not in IMAGES]
        return {one.name: _content(archive, one).decode("utf-8") for one in members}


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    return b"" if file is None else file.read()


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout


def code_lines(text: str) -> set[int]:
    """The numbers of a module's code lines."""
    lines = enumerate(text.splitlines(), start=1)
    written = {number for number, line in lines if line.strip() and not line.lstrip().startswith("#")}
    return written - {number for node in ast.walk(ast.parse(text)) if not _is_code(node) for number in _span(node)}


def _is_code(node: ast.AST) -> bool:
    return not isinstance(node, ast.Import | ast.ImportFrom) and not _is_docstring(node)


def _is_docstring(node: ast.AST) -> bool:
    """A text that stands alone: also the one below a field."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _span(node: ast.AST) -> range:
    assert isinstance(node, ast.stmt)
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def packages(tree: Tree) -> dict[str, tuple[int, int]]:
    """Modules and code lines of each package below ``maintainer/``; its own modules stand under its name."""
    modules: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for name in modules_of(tree):
        parts = PurePosixPath(name).parts
        package = parts[1] if len(parts) > 2 else PACKAGE
        modules[package] += 1
        lines[package] += len(code_lines(tree[name]))
    return {package: (modules[package], lines[package]) for package in sorted(modules)}


def modules_of(tree: Tree) -> list[str]:
    """The paths of the package's modules."""
    return [name for name in tree if name.startswith(f"{PACKAGE}/") and name.endswith(PYTHON)]


def other_lines(tree: Tree) -> dict[str, int]:
    """Lines, without blank ones, of what is in the package and is not Python, by suffix."""
    counted: Counter[str] = Counter()
    for name, text in tree.items():
        if name.startswith(f"{PACKAGE}/") and not name.endswith(PYTHON):
            counted[PurePosixPath(name).suffix] += sum(1 for line in text.splitlines() if line.strip())
    return {suffix: lines for suffix, lines in sorted(counted.items()) if lines}


def pages(tree: Tree) -> tuple[int, int]:
    """Pages of ``docs/`` and their words."""
    texts = [text for name, text in tree.items() if name.startswith("docs/") and name.endswith(PAGE)]
    return len(texts), sum(len(text.split()) for text in texts)


def moved(before: Tree, after: Tree) -> Moved:
    """What moved between two trees.

    A definition moved if its code left one module and the same code came into another one. A name that changed is not
    the same code; its docstring may change.
    """
    left: Counter[str] = Counter()
    for name in modules_of(before):
        left.update(_definitions(before[name]) - _definitions(after.get(name, "")))
    within = out = 0
    for name, text in sorted(after.items(), key=lambda one: not one[0].startswith(f"{PACKAGE}/")):
        if not name.endswith(PYTHON):
            continue
        came = _definitions(text) - _definitions(before.get(name, ""))
        took = came & left
        left -= took
        lines = sum(len(code_lines(code)) * count for code, count in took.items())
        if name.startswith(f"{PACKAGE}/"):
            within += lines
        else:
            out += lines
    return Moved(within=within, out=out)


def _definitions(text: str) -> Counter[str]:
    """The module's statements outside imports and docstrings, without comments and docstrings."""
    return Counter(ast.unparse(_bare(node)) for node in ast.parse(text).body if _is_code(node))


def _bare(node: ast.stmt) -> ast.stmt:
    for inner in ast.walk(node):
        if isinstance(inner, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            inner.body = [one for one in inner.body if not _is_docstring(one)] or [ast.Pass()]
    return node


def report(tree: Tree, before: Tree | None) -> Iterator[str]:
    """The figures, a line each."""
    counted = packages(tree)
    earlier = {} if before is None else packages(before)
    yield f"{'package':<24}{'modules':>8}{'code lines':>12}" + ("" if before is None else f"{'change':>10}")
    for package in sorted({*counted, *earlier}):
        modules, lines = counted.get(package, (0, 0))
        change = "" if before is None else f"{lines - earlier.get(package, (0, 0))[1]:>+10,}"
        yield f"{package:<24}{modules:>8,}{lines:>12,}{change}"
    total = sum(lines for _, lines in counted.values())
    change = "" if before is None else f"{total - sum(lines for _, lines in earlier.values()):>+10,}"
    yield f"{'all':<24}{sum(modules for modules, _ in counted.values()):>8,}{total:>12,}{change}"
    yield "not Python, lines: " + ", ".join(f"{suffix} {lines:,}" for suffix, lines in other_lines(tree).items())
    count, words = pages(tree)
    yield f"docs: {count:,} pages, {words:,} words" + ("" if before is None else f" ({words - pages(before)[1]:+,})")
    if before is not None:
        went = moved(before, tree)
        yield f"moved, about: {went.within:,} code lines within {PACKAGE}/, {went.out:,} out of it"


def main() -> None:
    """Print the figures of the working tree, or of a commit."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.code_lines", description="count the code lines of maintainer/"
    )
    parser.add_argument("commit", nargs="?", help="count this commit; without it, the working tree")
    parser.add_argument("--since", metavar="COMMIT", help="compare with this commit")
    arguments = parser.parse_args()
    before = None if arguments.since is None else read_tree(arguments.since)
    print("\n".join(report(read_tree(arguments.commit), before)))


if __name__ == "__main__":
    main()
