"""Finds every error that the program makes, by reading its source: codes, messages and help lines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[3]
CODE = re.compile(r"[TAVEC]\d{3}")
_BASES = frozenset({"MaintainerError", "Problem"})
_HOLE = "\0"
"""Stands for what is put into a message when it is made."""


@dataclass(frozen=True)
class MadeError:
    """One place where an error is made. ``message`` has a NUL for each part that is not known from the source."""

    place: str
    kind: str
    code: str | None
    message: str
    help: str | None

    @property
    def pattern(self) -> re.Pattern[str]:
        """What the message may look like."""
        return _pattern(self.message)


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, text.split(_HOLE))), re.DOTALL)


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def modules(*below: str) -> Iterator[tuple[str, ast.Module]]:
    """Each module of the package and of the demo, or of some of their folders, by its path; each is parsed once."""
    for folder in below or ("maintainer", "examples/demo"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), _parsed(path)


@cache
def nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """All of a module, as `ast.walk` finds it."""
    return tuple(ast.walk(tree))


def code_literals() -> dict[str, str]:
    """Every code that stands in the source as text of its own, and one place where it does."""
    return {
        node.value: f"{name}:{node.lineno}"
        for name, tree in modules()
        for node in nodes(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.fullmatch(node.value)
    }


def texts() -> Iterator[tuple[str, str]]:
    """Every text in the source with its place; doc strings, too."""
    for name, tree in modules():
        for node in nodes(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield f"{name}:{node.lineno}", node.value


@cache
def patterns() -> tuple[re.Pattern[str], ...]:
    """What every text of some length in the source may look like when it is printed."""
    texts = {
        text_of(node, {})
        for _, tree in modules()
        for node in nodes(tree)
        if isinstance(node, ast.JoinedStr | ast.BinOp | ast.Constant)
    }
    return tuple(_pattern(text) for text in sorted(texts) if len(text.replace(_HOLE, "").strip()) >= 6)


def is_printed(text: str) -> bool:
    """Whether the program has a text that this one can come from."""
    return any(pattern.fullmatch(text) for pattern in patterns())


@cache
def words_itself() -> frozenset[str]:
    """Error classes that make their message themselves."""
    return frozenset(
        node.name
        for name, tree in modules()
        for node in nodes(tree)
        if isinstance(node, ast.ClassDef)
        and name != "maintainer/errors/__init__.py"
        and any(isinstance(statement, ast.FunctionDef) and statement.name == "__init__" for statement in node.body)
    )


@cache
def default_codes() -> dict[str, str | None]:
    """The error classes by name, with the code that each has by itself or from its base."""
    codes: dict[str, str | None] = {"Problem": None, "MaintainerError": "E600"}
    bases: dict[str, list[str]] = {}
    own: dict[str, str] = {}
    for _, tree in modules():
        for node in nodes(tree):
            if not isinstance(node, ast.ClassDef):
                continue
            bases[node.name] = [base.id for base in node.bases if isinstance(base, ast.Name)]
            for line in node.body:
                target = line.targets[0] if isinstance(line, ast.Assign) else getattr(line, "target", None)
                value = getattr(line, "value", None)
                if isinstance(target, ast.Name) and target.id == "default_code" and isinstance(value, ast.Constant):
                    own[node.name] = str(value.value)
    for _ in bases:
        for name, parents in bases.items():
            parent = next((parent for parent in parents if parent in codes), None)
            if parent is not None and parent not in ("Problem",):
                codes[name] = own.get(name, codes[parent])
    return codes


def text_of(node: ast.expr | None, constants: dict[str, ast.expr]) -> str:
    """A text as far as the source says it."""
    match node:
        case ast.Constant(value=str(value)):
            return value
        case ast.JoinedStr(values=values):
            return "".join(text_of(value, constants) for value in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return text_of(left, constants) + text_of(right, constants)
        case ast.Name(id=name) if name in constants:
            return text_of(constants[name], {})
        case _:
            return _HOLE


@cache
def makers() -> dict[str, str]:
    """The functions that make an error of what they are told, by name, with its class; they give the help."""
    return {
        node.name: node.returns.id
        for _, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and isinstance(node.returns, ast.Name)
        if node.returns.id in default_codes() and node.args.args and node.args.args[0].arg == "what"
    }


def made_errors() -> Iterator[MadeError]:
    """Every call that makes an error, or a problem of a run; those of policy files have rules of their own."""
    classes = {**default_codes(), **dict.fromkeys(makers())}
    for name, tree in modules():
        if name in ("maintainer/errors/__init__.py", "maintainer/policy/schema/formats.py"):
            continue
        constants = {
            line.targets[0].id: line.value
            for line in tree.body
            if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)
        }
        functions = [node for node in nodes(tree) if isinstance(node, ast.FunctionDef)]
        for node in nodes(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in classes):
                continue
            local = {**constants, **_texts_before(node, functions)}
            kind = node.func.id
            if kind in words_itself():
                continue
            named = {keyword.arg: keyword.value for keyword in node.keywords}
            positional = list(node.args)
            if kind == "Problem":
                fields = ("code", "what", "where", "help")
                named.update(zip(fields, positional, strict=False))
            elif positional:
                named["what"] = positional[0]
            code = text_of(named["code"], constants) if "code" in named else classes[kind]
            yield MadeError(
                place=f"{name}:{node.lineno}",
                kind=kind,
                code=None if code is None or not CODE.fullmatch(code) else code,
                message=text_of(named["what"], local),
                help=text_of(named["help"], local) if "help" in named else _HOLE if kind in makers() else None,
            )


def _texts_before(call: ast.Call, functions: Sequence[ast.FunctionDef]) -> dict[str, ast.expr]:
    """What names of the function around a call stand for there, where a text was put into them right before."""
    around = [one for one in functions if one.lineno <= call.lineno <= (one.end_lineno or 0)]
    assigned = [
        (line.lineno, line.targets[0].id, line.value)
        for one in around
        for line in ast.walk(one)
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name) and line.lineno < call.lineno
        if line.targets[0].id in ("message", "help", "what") and call.lineno - line.lineno < 6
    ]
    return {name: value for _, name, value in sorted(assigned, key=lambda one: one[0])}
