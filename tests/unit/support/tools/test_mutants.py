"""The mutants themselves: which changes a piece of code has, that each is made, and that reasons are complete."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools.mutation.mutants import mutants_of
from tools.mutation.survivors import key_of, read_reasons

CODE = '''"""Says nothing."""
from __future__ import annotations
LIMIT = 3
class Box:
    """A box."""
    size: int = 5
def fits(size: int, name: str = "x") -> bool:
    """Whether it fits."""
    if size < 0:
        raise ValueError(f"{size} is below 0")
    assert name
    return size <= LIMIT and not name.startswith("-")
'''


def changes(root: Path) -> list[str]:
    (root / "code.py").write_text(CODE)
    return [f"{mutant.line}: {mutant.change}" for mutant in mutants_of(root, "code.py")]


def test_each_mistake_is_one_mutant_and_what_is_for_people_or_mypy_is_left(tmp_path: Path) -> None:
    assert changes(tmp_path) == [
        "3: 3 -> 4",
        "3: 3 -> 2",
        "6: 5 -> 6",
        "6: 5 -> 4",
        "7: 'x' -> 'mutated'",
        "9: size < 0 -> size <= 0",
        "9: size < 0 -> size >= 0",
        "9: 0 -> 1",
        "9: 0 -> -1",
        "10: raise ValueError(f'{size} is below 0') -> dropped",
        "12: return size <= LIMIT and (not name.startswith('-')) -> return None",
        "12: size <= LIMIT and (not name.startswith('-')) -> size <= LIMIT or not name.startswith('-')",
        "12: size <= LIMIT -> size < LIMIT",
        "12: size <= LIMIT -> size > LIMIT",
        "12: not name.startswith('-') -> name.startswith('-')",
        "12: '-' -> 'mutated'",
    ]


def test_a_mutant_differs_from_the_code_in_its_change_alone(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(CODE)
    tree = ast.parse(CODE)
    for mutant in mutants_of(tmp_path, "code.py"):
        before, after = ast.unparse(tree).splitlines(), ast.unparse(mutant.applied(tree)).splitlines()
        assert sum(line != other for line, other in zip(before, after, strict=True)) == 1, mutant.change


def test_a_mutant_is_known_by_its_line_and_not_by_the_lines_number(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(CODE)
    first = mutants_of(tmp_path, "code.py")[0]
    (tmp_path / "code.py").write_text(CODE.replace("LIMIT = 3", "\n\nLIMIT = 3"))
    moved = mutants_of(tmp_path, "code.py")[0]
    assert moved.line == first.line + 2
    assert key_of(moved, tmp_path) == ("code.py", "LIMIT = 3", "3 -> 4")


def test_a_reason_is_never_empty(tmp_path: Path) -> None:
    path = tmp_path / "survivors.yml"
    path.write_text("a.py:\n  x = 1:\n    1 -> 2: it is not read\n")
    assert read_reasons(path) == {("a.py", "x = 1", "1 -> 2"): "it is not read"}
    path.write_text("a.py:\n  x = 1:\n    1 -> 2:\n")
    with pytest.raises(ValueError, match="no reason"):
        read_reasons(path)
    assert all(read_reasons().values())
