"""List the mutants of a module: small changes of its syntax tree, each of which is a mistake that somebody could make.

Not changed are annotations, docstrings, imports, decorators, ``assert`` (it tells mypy what is known), the names of
enum members, and texts inside ``raise`` (they are for people, and every error has a code that is changed).
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_FLIPS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
_DROPPED = (ast.Expr, ast.Raise, ast.Continue, ast.Break, ast.AugAssign, ast.Delete)
OTHER_TEXT = "mutated"

Step = tuple[str, int | None]
"""One step down a tree: the field of a node, and the place in it where it is a list."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change. ``path`` leads to the changed node, ``lines`` are those of the statement that holds it."""

    file: str
    line: int
    column: int
    change: str
    path: tuple[Step, ...]
    make: Callable[[ast.AST], ast.AST]
    lines: tuple[int, int]

    def applied(self, tree: ast.Module) -> ast.Module:
        """Return the tree with the change in it."""
        changed = copy.deepcopy(tree)
        *above, (field, place) = self.path
        parent: ast.AST = changed
        for step in above:
            parent = child_at(parent, step)
        new = ast.copy_location(self.make(child_at(parent, (field, place))), child_at(parent, (field, place)))
        if place is None:
            setattr(parent, field, new)
        else:
            getattr(parent, field)[place] = new
        return ast.fix_missing_locations(changed)


def child_at(node: ast.AST, step: Step) -> ast.AST:
    """Return the child of a node that a step leads to."""
    field, place = step
    child = getattr(node, field)
    result = child if place is None else child[place]
    assert isinstance(result, ast.AST)
    return result


def mutants_of(root: Path, file: str, names: tuple[str, ...] = ()) -> list[Mutant]:
    """Return all mutants of a file, in the order of its text; of some of its functions only where they are named."""
    tree = ast.parse((root / file).read_text(encoding="utf-8"))
    mutants: list[Mutant] = []
    for place, statement in enumerate(tree.body):
        if names and getattr(statement, "name", None) not in names:
            continue
        for path, node, holder, quiet in _nodes(statement, (("body", place),), statement, False):
            for change, make in _changes(node, quiet=quiet):
                last = holder.end_lineno or holder.lineno
                if isinstance(holder, (ast.If, ast.While, ast.For, ast.With, ast.Match)):
                    last = max(holder.lineno, holder.body[0].lineno - 1) if hasattr(holder, "body") else holder.lineno
                position = (getattr(node, "lineno", holder.lineno), getattr(node, "col_offset", 0))
                mutants.append(Mutant(file, *position, change, path, make, (holder.lineno, last)))
    return sorted(mutants, key=lambda mutant: (mutant.line, mutant.column))


def _nodes(
    node: ast.AST, path: tuple[Step, ...], holder: ast.stmt, quiet: bool
) -> Iterator[tuple[tuple[Step, ...], ast.AST, ast.stmt, bool]]:
    """Walk what may be changed: each node with its path, its statement, and whether its texts stay as they are."""
    if isinstance(node, ast.stmt):
        holder = node
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.Assert)) or _is_docstring(node) or _is_for_types(node):
        return
    if isinstance(node, ast.ClassDef) and any("Enum" in ast.unparse(base) for base in node.bases):
        return
    yield path, node, holder, quiet
    quiet = quiet or isinstance(node, (ast.Raise, ast.JoinedStr))
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "keywords" if isinstance(node, ast.ClassDef) else ""):
            continue
        if isinstance(value, list):
            for place, child in enumerate(value):
                if isinstance(child, ast.AST):
                    yield from _nodes(child, (*path, (field, place)), holder, quiet)
        elif isinstance(value, ast.AST) and not (field == "format_spec" and isinstance(node, ast.FormattedValue)):
            yield from _nodes(value, (*path, (field, None)), holder, quiet)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_for_types(node: ast.AST) -> bool:
    """Whether mypy alone reads the statement: imports for types, type variables and aliases."""
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    if not isinstance(node, ast.Assign):
        return False
    value = node.value
    return (isinstance(value, ast.Call) and ast.unparse(value.func) == "TypeVar") or (
        isinstance(value, ast.Subscript) and ast.unparse(value.value) in ("Callable", "Mapping", "tuple", "dict")
    )


def _changes(node: ast.AST, *, quiet: bool) -> Iterator[tuple[str, Callable[[ast.AST], ast.AST]]]:
    if isinstance(node, ast.Compare):
        yield from _other_comparisons(node)
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield _replaced(node, ast.BoolOp(other, node.values))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub)):
        yield _replaced(node, node.operand)
    elif isinstance(node, (ast.BinOp, ast.AugAssign)):
        other_operator = _ARITHMETIC.get(type(node.op))
        if other_operator is not None and not _of_texts(node):
            changed = copy.deepcopy(node)
            changed.op = other_operator()
            yield _replaced(node, changed)
    elif isinstance(node, ast.Constant):
        yield from _other_constants(node, quiet=quiet)
    elif isinstance(node, ast.JoinedStr) and not quiet:
        yield _replaced(node, ast.Constant(OTHER_TEXT))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CALLS:
        yield _replaced(node, ast.Call(ast.Name(_CALLS[node.func.id], ast.Load()), node.args, node.keywords))
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield _replaced(node, ast.Return(ast.Constant(None)))
    if isinstance(node, (ast.If, ast.IfExp, ast.While)) and isinstance(node.test, (ast.Name, ast.Attribute, ast.Call)):
        yield _condition_negated(node)
    if isinstance(node, _DROPPED):
        yield _dropped(node)


def _replaced(old: ast.AST, new: ast.AST) -> tuple[str, Callable[[ast.AST], ast.AST]]:
    return f"{_text(old)} -> {_text(new)}", lambda _: copy.deepcopy(new)


def _other_comparisons(node: ast.Compare) -> Iterator[tuple[str, Callable[[ast.AST], ast.AST]]]:
    for place, operator in enumerate(node.ops):
        for other in _FLIPS[type(operator)]:
            changed = copy.deepcopy(node)
            changed.ops[place] = other()
            yield _replaced(node, changed)


def _other_constants(node: ast.Constant, *, quiet: bool) -> Iterator[tuple[str, Callable[[ast.AST], ast.AST]]]:
    value = node.value
    if isinstance(value, bool):
        yield _replaced(node, ast.Constant(not value))
    elif isinstance(value, (int, float)):
        for other in (value + 1, value - 1):
            yield _replaced(node, ast.Constant(other))
    elif isinstance(value, str) and not quiet:
        yield _replaced(node, ast.Constant(OTHER_TEXT))


def _condition_negated(node: ast.If | ast.IfExp | ast.While) -> tuple[str, Callable[[ast.AST], ast.AST]]:
    def make(old: ast.AST) -> ast.AST:
        assert isinstance(old, (ast.If, ast.IfExp, ast.While))
        old.test = ast.copy_location(ast.UnaryOp(ast.Not(), old.test), old.test)
        return old

    return f"if {_text(node.test)} -> if not {_text(node.test)}", make


def _dropped(node: ast.AST) -> tuple[str, Callable[[ast.AST], ast.AST]]:
    return f"{_text(node)} -> dropped", lambda _: ast.Pass()


def _of_texts(node: ast.BinOp | ast.AugAssign) -> bool:
    """Whether it joins texts, which have no other operation."""
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.value,)
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in sides
    )


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _text(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 100 else f"{text[:97]}..."
