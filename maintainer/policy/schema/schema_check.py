"""Checks a document against the JSON Schema of its kind, in words of our own.

The rules are those of ``schemas/*.json``; nothing here knows a key's type or bounds. Every problem is one
finding at its own place. A value that was refused while reading is neither checked nor called missing.
"""

from __future__ import annotations

import enum
from typing import Any

from maintainer.policy.diagnostics.diagnostics import Diagnostic, Severity, Span
from maintainer.policy.schema.formats import Problem, check_format
from maintainer.policy.schema.schema_keys import POLICY_SCHEMA, PROJECT_SCHEMA, TESTS_SCHEMA
from maintainer.policy.schema.schema_messages import (
    dotted,
    either,
    enum_help,
    expected,
    shown,
    type_help,
    unknown_key_help,
    written,
)
from maintainer.policy.schema.schema_rules import Rule, compiled
from maintainer.policy.yaml.discovery import POLICY_FOLDER, PROFILE_FOLDER, PROJECT_FILE, TEST_FOLDER
from maintainer.policy.yaml.yaml_document import Document, Path

MAX_FINDINGS = 100
"""Per file."""


class DocumentKind(str, enum.Enum):
    """What a file is for."""

    POLICY = "policy"
    RULE = "rule"
    PROFILE = "profile"
    PROJECT = "project"
    TESTS = "tests"


_NOT_ALLOWED: dict[DocumentKind, dict[str, str]] = {
    DocumentKind.POLICY: {
        "match": "a file has either `table` or `match`, not both",
        "priority": "`priority` is for rules, files with `match`",
    },
    DocumentKind.RULE: {"extends": "`extends` is for the file of one table, not for a rule"},
    DocumentKind.PROFILE: {
        "table": "a profile names no table; tables name profiles with `extends`",
        "match": "a profile is not a rule; tables name profiles with `extends`",
        "priority": "`priority` is for rules, files with `match`",
        "extends": "`extends` is for the file of one table, not for a profile",
    },
    DocumentKind.PROJECT: {},
    DocumentKind.TESTS: {},
}

_SCHEMAS = {DocumentKind.PROJECT: PROJECT_SCHEMA, DocumentKind.TESTS: TESTS_SCHEMA}
"""Every other kind has the schema of policies."""


def kind_of(document: Document) -> DocumentKind:
    """Tell what a file is for: by its name, by its folder, and by whether it has `match` and no `table`."""
    folders = document.file.split("/")
    if folders[-1] == PROJECT_FILE:
        return DocumentKind.PROJECT
    if folders[:2] == [POLICY_FOLDER, TEST_FOLDER]:
        return DocumentKind.TESTS
    if PROFILE_FOLDER in folders[:-1]:
        return DocumentKind.PROFILE
    has = {key: key in document.data or (key,) in document.unreadable for key in ("table", "match")}
    return DocumentKind.RULE if has["match"] and not has["table"] else DocumentKind.POLICY


def check_schema(document: Document, kind: DocumentKind) -> list[Diagnostic]:
    """Return what the schema says against a document, sorted; at most `MAX_FINDINGS`."""
    walk = _Walk(document, kind)
    walk.top(compiled(_SCHEMAS.get(kind, POLICY_SCHEMA)))
    return sorted(walk.findings)[:MAX_FINDINGS]


class _Walk:
    """One pass over one document."""

    def __init__(self, document: Document, kind: DocumentKind) -> None:
        self.findings: list[Diagnostic] = []
        self._document = document
        self._kind = kind

    def top(self, rule: Rule) -> None:
        """Check the whole document, and what belongs in a file of its kind."""
        data, refused = self._document.data, _NOT_ALLOWED[self._kind]
        for key, message in refused.items():
            if key in data:
                self._report("P208", message, self._document.key_span_of((key,)), "remove it")
        self._map(rule, {key: value for key, value in data.items() if key not in refused}, (), refused)
        if self._kind is DocumentKind.POLICY and not self._has("table"):
            help = "add `table: sales.orders`, or `match:` to make it a rule for many tables"
            self._report("P202", "the file names no table", self._document.span_of(()), help)

    def _has(self, key: str) -> bool:
        return key in self._document.data or (key,) in self._document.unreadable

    def _value(self, rule: Rule, value: object, path: Path) -> None:
        kind = type(value)
        if kind not in rule.python_types:
            self._wrong_type(rule, value, path)
        elif isinstance(value, dict):
            self._map(rule, value, path)
        elif isinstance(value, list):
            self._list(rule, value, path)
        elif isinstance(value, (str, int, float)):
            self._scalar(rule, value, path)

    def _map(self, rule: Rule, value: dict[str, Any], path: Path, hidden: dict[str, str] | None = None) -> None:
        additional = rule.additional
        for key, inner in value.items():
            known = rule.properties.get(key)
            if known is not None:
                self._value(known, inner, (*path, key))
            elif additional is False:
                names = [name for name in rule.properties if hidden is None or name not in hidden]
                self._unknown_key(key, path, names)
            else:
                self._free_key(rule, key, inner, (*path, key))
        for key in rule.required:
            if key not in value and (*path, key) not in self._document.unreadable:
                self._missing(key, rule.properties[key], path)
        if not self._has_unreadable(path):
            self._count(len(value), rule.min_properties, rule.max_properties, "key", path)

    def _free_key(self, rule: Rule, key: str, inner: object, path: Path) -> None:
        """Check a key whose name the schema leaves open: an environment, a property, an argument."""
        bad_name = rule.name_pattern is not None and not rule.name_pattern.search(key)
        if bad_name or len(key) > (rule.name_max_length or len(key)):
            help = "use letters, digits, `_`, `.` and `-`"
            self._report("P205", f"{shown(key)} is not a name for a key here", self._key_span(path), help)
        elif isinstance(rule.additional, Rule):
            self._value(rule.additional, inner, path)

    def _list(self, rule: Rule, value: list[Any], path: Path) -> None:
        if rule.items is not None:
            for position, inner in enumerate(value):
                self._value(rule.items, inner, (*path, position))
        if not self._has_unreadable(path):
            self._count(len(value), rule.min_items, rule.max_items, "item", path)
        if rule.unique:
            seen: dict[tuple[type, object], int] = {}
            for position, inner in enumerate(value):
                # Lists and maps among the items are a wrong type already.
                if isinstance(inner, (dict, list)):
                    continue
                first = seen.setdefault((type(inner), inner), position)
                if first != position:
                    message = f"{dotted(path)} has {shown(inner)} twice"
                    self._report("P207", message, self._document.span_of((*path, position)), "remove one of the two")

    def _scalar(self, rule: Rule, value: str | int | float, path: Path) -> None:
        if isinstance(value, str) and self._kind is not DocumentKind.PROJECT and "${env:" in value:
            help = "only maintainer.yml may use them: what a policy says must not depend on the machine"
            self._at_value("P309", f"{dotted(path)} uses an environment variable", path, help)
        elif rule.enum is not None and value not in rule.enum:
            self._not_allowed(rule, value, path)
        elif rule.format is not None and (problem := check_format(rule.format, value)) is not None:
            self._format_problem(problem, path)
        elif isinstance(value, str):
            self._text(rule, value, path)
        elif rule.format != "size" and not isinstance(value, bool):
            self._bounds(rule, value, path)

    def _text(self, rule: Rule, value: str, path: Path) -> None:
        name = dotted(path)
        if rule.min_length is not None and len(value) < rule.min_length:
            self._at_value("P206", f"{name} is empty", path, self._example_help(rule))
        elif rule.max_length is not None and len(value) > rule.max_length:
            message = f"{name} has {len(value)} characters; at most {rule.max_length} are allowed"
            self._at_value("P206", message, path, "make it shorter")
        elif rule.pattern is not None and rule.format not in ("size", "duration") and not rule.pattern.search(value):
            self._at_value("P205", f"{name} cannot be {shown(value)}", path, self._example_help(rule))

    def _bounds(self, rule: Rule, value: float, path: Path) -> None:
        for bound, outside, word in (
            (rule.minimum, rule.minimum is not None and value < rule.minimum, "at least"),
            (rule.maximum, rule.maximum is not None and value > rule.maximum, "at most"),
        ):
            if outside:
                message = f"{dotted(path)} must be {word} {bound}, not {shown(value)}"
                self._at_value("P206", message, path, self._example_help(rule))

    def _count(self, count: int, least: int | None, most: int | None, noun: str, path: Path) -> None:
        if least is not None and count < least:
            message = f"{dotted(path)} is empty" if not count else f"{dotted(path)} has too few {noun}s"
            self._report("P206", message, self._key_span(path), f"it needs at least {least} {noun}")
        elif most is not None and count > most:
            message = f"{dotted(path)} has {count} {noun}s; at most {most} are allowed"
            self._report("P206", message, self._key_span(path), "make it shorter")

    def _wrong_type(self, rule: Rule, value: object, path: Path) -> None:
        if value is None:
            self._report("P203", f"{dotted(path)} has no value", self._key_span(path), self._example_help(rule))
            return
        if rule.enum is not None and not isinstance(value, (dict, list)) and path != ("version",):
            self._not_allowed(rule, value, path)
            return
        message = f"{dotted(path)} must be {expected(rule)}, not {shown(value)}"
        span = self._key_span(path) if isinstance(value, (dict, list)) else self._document.span_of(path)
        self._report("P203", message, span, type_help(rule, value, rule.example))

    def _not_allowed(self, rule: Rule, value: object, path: Path) -> None:
        allowed = [written(one) for one in rule.enum or () if one is not None]
        if path == ("version",):
            help = "write `version: 1`; a newer format needs a newer maintainer"
            self._at_value("P209", f"version {shown(value)} of the format is not known", path, help)
            return
        message = f"{dotted(path)} must be {either([f'`{one}`' for one in allowed])}, not {shown(value)}"
        self._at_value("P204", message, path, enum_help(allowed, value))

    def _unknown_key(self, key: str, path: Path, known: list[str]) -> None:
        where = f"in {dotted(path)}" if path else "at the top level"
        span = self._document.key_span_of((*path, key))
        self._report("P201", f"unknown key {shown(key)} {where}", span, unknown_key_help(key, known, path))

    def _missing(self, key: str, rule: Rule, path: Path) -> None:
        where = f"in {dotted(path)}" if path else "at the top level"
        help = f"add `{key}: {written(rule.example)}`" if rule.example is not None else None
        self._report("P202", f"`{key}` is missing {where}", self._key_span(path), help)

    def _format_problem(self, problem: Problem, path: Path) -> None:
        span = self._document.span_of(path)
        if problem.offset is not None:
            span = self._part_of(span, str(self._value_at(path)), problem.offset, problem.length)
        message = f"{dotted(path)}: {problem.message}"
        self._report(problem.code, message, span, problem.help, problem.severity)

    def _part_of(self, span: Span, value: str, offset: int, length: int) -> Span:
        """Narrow a span to a part of its text, where the file shows the text as it is (no escapes, one line)."""
        line = self._document.text.split("\n")[span.line - 1]
        start = span.column - 1 + (line[span.column - 1 : span.column] in ('"', "'"))
        if span.line != span.end_line or line[start : start + len(value)] != value:
            return span
        first = start + min(offset, max(len(value) - 1, 0)) + 1
        return Span(span.line, first, span.line, max(min(first + length, start + len(value) + 1), first + 1))

    def _value_at(self, path: Path) -> object:
        value: Any = self._document.data
        for part in path:
            value = value[part]
        return value

    def _example_help(self, rule: Rule) -> str | None:
        return f"write it like `{written(rule.example)}`" if rule.example is not None else None

    def _has_unreadable(self, path: Path) -> bool:
        """Whether something in a map or list was left out while reading, so that its length says nothing."""
        return any(one[: len(path)] == path for one in self._document.unreadable)

    def _key_span(self, path: Path) -> Span:
        return self._document.key_span_of(path)

    def _at_value(self, code: str, message: str, path: Path, help: str | None) -> None:
        self._report(code, message, self._document.span_of(path), help)

    def _report(
        self, code: str, message: str, span: Span, help: str | None, severity: Severity = Severity.ERROR
    ) -> None:
        self.findings.append(Diagnostic(code, severity, message, self._document.file, span, help))
