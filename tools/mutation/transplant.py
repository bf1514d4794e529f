"""Put a mutant into modules that are imported already, so that tests need not be collected anew for each mutant.

Where the change is in a function, its code and its defaults are replaced, so that every import of it sees the change.
Where it is in an assignment of a module, the value is replaced wherever it was imported, and what is made of it.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import sys
from types import FunctionType, ModuleType
from typing import Any

from maintainer.model.cached_property import cached_property
from tools.mutation.mutants import Mutant, child_at


class NoTransplantError(Exception):
    """The change cannot be put into the running process."""


def transplant(mutant: Mutant, tree: ast.Module) -> None:
    """Put a mutant of a module with this tree into the process.

    Raises:
        NoTransplantError: There is no way to do it.
    """
    module = sys.modules[mutant.file.removesuffix(".py").replace("/", ".")]
    changed = mutant.applied(tree)
    outer: list[ast.ClassDef] = []
    node: ast.AST = changed
    for step in mutant.path:
        node = child_at(node, step)
        if isinstance(node, ast.FunctionDef):
            _replace_function(module, outer, node)
            break
        if isinstance(node, ast.ClassDef):
            outer.append(node)
            continue
        if isinstance(node, ast.stmt):
            if outer:
                _replace_defaults(module, outer[-1])
            else:
                _replace_values(module, changed, node)
            break
    for value in list(vars(module).values()):
        if hasattr(value, "cache_clear"):
            value.cache_clear()


def _made(module: ModuleType, statement: ast.stmt) -> dict[str, Any]:
    """Run one statement in the names of a module; return what it defines."""
    code = compile(ast.Module([ast.parse("from __future__ import annotations").body[0], statement], []), "m", "exec")
    names: dict[str, Any] = {}
    exec(code, vars(module), names)
    return names


def _replace_function(module: ModuleType, outer: list[ast.ClassDef], node: ast.FunctionDef) -> None:
    node.decorator_list = []
    new = _made(module, node)[node.name]
    owner: Any = module
    for class_ in outer:
        owner = getattr(owner, class_.name)
    old = _function_in(inspect.getattr_static(owner, node.name))
    if old.__code__.co_freevars != new.__code__.co_freevars:
        raise NoTransplantError(f"{node.name} closes over something")
    old.__code__, old.__defaults__, old.__kwdefaults__ = new.__code__, new.__defaults__, new.__kwdefaults__


def _function_in(value: Any) -> FunctionType:
    """Return the function under a property, a class method or a wrapper."""
    if isinstance(value, property):
        value = value.fget
    if isinstance(value, (staticmethod, classmethod)):
        value = value.__func__
    if isinstance(value, (functools.cached_property, cached_property)):
        value = value.func
    value = inspect.unwrap(value)
    if not isinstance(value, FunctionType):
        raise NoTransplantError(f"{value!r} is no function")
    return value


def _replace_defaults(module: ModuleType, node: ast.ClassDef) -> None:
    """Replace defaults of a dataclass's fields, and plain values of a class."""
    old = getattr(module, node.name)
    new = _made(module, node)[node.name]
    if dataclasses.is_dataclass(old):
        old.__init__.__defaults__ = new.__init__.__defaults__  # type: ignore[misc]
        old.__init__.__kwdefaults__ = new.__init__.__kwdefaults__  # type: ignore[misc]
    for name, value in vars(new).items():
        if isinstance(value, (int, float, str, tuple, frozenset)) and not name.startswith("__"):
            setattr(old, name, value)


def _replace_values(module: ModuleType, changed: ast.Module, node: ast.stmt) -> None:
    """Run an assignment again as it is now, then those that use its names, and hand the values to who imported them."""
    stale: set[str] = set()
    for statement in changed.body[changed.body.index(node) :]:
        names = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
        read = {name.id for name in names if isinstance(name.ctx, ast.Load)}
        assigns = isinstance(statement, (ast.Assign, ast.AnnAssign))
        if statement is not node and not (assigns and read & stale):
            continue
        if not assigns:
            raise NoTransplantError(f"a statement of a module: {ast.unparse(statement)[:60]}")
        for name, value in _made(module, statement).items():
            if name not in ("annotations", "__annotations__"):
                stale.add(name)
                _hand_on(name, vars(module)[name], value)


def _hand_on(name: str, old: object, new: object) -> None:
    for imported in list(sys.modules.values()):
        names = getattr(imported, "__dict__", {})
        if names.get(name) is old:
            names[name] = new
