"""Check a document against the JSON Schema of its kind.

jsonschema finds what is wrong; here each of its errors becomes findings in our own words, at the exact place. A value
that was refused while reading is neither checked nor called missing.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from maintainer.policy.diagnostics import Diagnostic, SourceSpan
from maintainer.policy.schema.formats import check_format, schema_validator
from maintainer.policy.schema.key_homes import switch_help, unknown_key_help
from maintainer.policy.schema.schema_keys import (
    POLICY_SCHEMA,
    PROJECT_SCHEMA,
    TESTS_SCHEMA,
    JsonObject,
    dotted,
    either,
    enum_help,
    example_help,
    expected,
    shown,
    type_help,
    written,
)
from maintainer.policy.yaml.discovery import POLICY_FOLDER, PROFILE_FOLDER, PROJECT_FILE, TEST_FOLDER
from maintainer.policy.yaml.yaml_document import Path, Refusal, YamlDocument, named_texts, plain_scalar

if TYPE_CHECKING:
    from jsonschema import ValidationError

MAX_FINDINGS = 100
"""Per file."""


class DocumentKind(enum.StrEnum):
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
        "manage": "`manage` is for rules, files with `match`; a table with a file is managed by it",
    },
    DocumentKind.RULE: {"extends": "`extends` is for the file of one table, not for a rule"},
    DocumentKind.PROFILE: {
        "table": "a profile names no table; tables name profiles with `extends`",
        "match": "a profile is not a rule; tables name profiles with `extends`",
        "priority": "`priority` is for rules, files with `match`",
        "manage": "`manage` is for rules, files with `match`",
        "extends": "`extends` is for the file of one table, not for a profile",
    },
    DocumentKind.PROJECT: {},
    DocumentKind.TESTS: {},
}

_SCHEMAS = {DocumentKind.PROJECT: PROJECT_SCHEMA, DocumentKind.TESTS: TESTS_SCHEMA}
"""Every other kind has the schema of policies."""


def kind_of(document: YamlDocument) -> DocumentKind:
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


def check_schema(document: YamlDocument, kind: DocumentKind) -> list[Diagnostic]:
    """Return what the schema says against a document, sorted; at most `MAX_FINDINGS`."""
    return sorted(_SchemaCheck(document, kind).findings())[:MAX_FINDINGS]


_FORMER_NAMES = {"type": "expectation_type"}
"""Keys that are required, as suites of older versions of Great Expectations name them."""

_OF_WHOLE_NAMES = (("conf",), ("properties",))
"""Maps whose keys are names with dots: settings of Spark, properties of Delta."""

_VALUE_RULES = (
    "type",
    "enum",
    "const",
    "x-format",
    "x-aboveZero",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
)
"""Rules about one scalar. The first that it breaks is reported: the others follow from it."""


MAX_GOOD, MAX_GOOD_CHARACTERS = 20_000, 2_000
_ALWAYS_THERE = ("version", "table", "tests")
"""Keys that a schema requires, or that are never said twice."""

_known_good: set[tuple[str, str, str]] = set()
"""What the schema has nothing against: a fleet says the same few things thousands of times.

Keys of a file's top level are independent of one another in our schemas, but for those that must be there.
"""


def _is_known_good(schema: str, key: str, value: object) -> bool:
    """Tell whether this value of a key was seen before without any error."""
    return key not in _ALWAYS_THERE and (schema, key, repr(value)) in _known_good


def _learn_good(schema: str, data: dict[str, Any], errors: list[Path]) -> None:
    """Remember the keys of a map that are not in the path of any error."""
    if () in errors or len(_known_good) > MAX_GOOD:
        return
    kept_out = {*_ALWAYS_THERE, *(path[0] for path in errors)}
    texts = ((key, repr(value)) for key, value in data.items() if key not in kept_out)
    _known_good.update((schema, key, text) for key, text in texts if len(text) <= MAX_GOOD_CHARACTERS)


class _SchemaCheck:
    def __init__(self, document: YamlDocument, kind: DocumentKind) -> None:
        self._document = document
        self._kind = kind
        self._refused = _NOT_ALLOWED[kind]

    def findings(self) -> Iterator[Diagnostic]:
        """Yield every finding, in no order."""
        data = self._document.data
        for key, message in self._refused.items():
            if key in data:
                yield self._document.error_at((key,), "P208", message, "remove it", at_key=True)
        if self._kind is DocumentKind.POLICY and "table" not in data and ("table",) not in self._document.unreadable:
            help = "add `table: sales.orders`, or `match:` to make it a rule for many tables"
            yield self._document.error_at((), "P202", "the file names no table", help)
        variables = set() if self._kind is DocumentKind.PROJECT else set(_texts_with_variables(data, ()))
        for path in variables:
            help = "only maintainer.yml may use them: what a policy says must not depend on the machine"
            yield self._document.error_at(path, "P309", f"{dotted(path)} uses an environment variable", help)
        if self._kind is not DocumentKind.PROJECT:
            for path, template in _unfilled(data):
                message = f"{dotted(path)}: `{template[:60]}` is not filled in, and would be part of the name"
                help = "write the name itself; only maintainer.yml may use variables, as `${env:NAME}`"
                variables.add(path)
                yield self._document.error_at(path, "P309", message, help)
        allowed = {key: value for key, value in data.items() if key not in self._refused}
        for path, error in self._errors(allowed):
            if path not in variables:
                yield from self._explain(error, path)

    def _errors(self, data: dict[str, Any]) -> Iterator[tuple[Path, ValidationError]]:
        """Yield jsonschema's errors, of each scalar the first."""
        schema = _SCHEMAS.get(self._kind, POLICY_SCHEMA)
        unknown = {key: value for key, value in data.items() if not _is_known_good(schema, key, value)}
        first: dict[Path, ValidationError] = {}
        errors = list(schema_validator(schema).iter_errors(unknown))
        _learn_good(schema, unknown, [tuple(error.absolute_path) for error in errors])
        for error in errors:
            path = tuple(error.absolute_path)
            if "propertyNames" in error.absolute_schema_path or error.validator not in _VALUE_RULES:
                yield path, error
            else:
                rival = first.setdefault(path, error)
                if _VALUE_RULES.index(error.validator) < _VALUE_RULES.index(rival.validator):
                    first[path] = error
        yield from first.items()

    def _explain(self, error: ValidationError, path: Path) -> Iterator[Diagnostic]:
        """Say what an error means. What jsonschema reports once for several keys or items is a finding for each."""
        # The stubs allow what our schemas never hold.
        schema: Any = error.schema
        limit: Any = error.validator_value
        value: Any = error.instance
        match error.validator:
            case _ if "propertyNames" in error.absolute_schema_path:
                message = f"{shown(value)} is not a name for a key here"
                help = "use letters, digits, `_`, `.` and `-`"
                yield self._document.error_at((*path, value), "P205", message, help, at_key=True)
            case "additionalProperties":
                known = [key for key in schema.get("properties", {}) if path or key not in self._refused]
                for key in value.keys() - schema.get("properties", {}).keys():
                    message = f"unknown key {shown(key)} {_where(path)}"
                    help = unknown_key_help(key, known, path, _SCHEMAS.get(self._kind, POLICY_SCHEMA))
                    yield self._document.error_at((*path, key), "P201", message, help, at_key=True)
            case "required":
                # jsonschema makes an error of each missing key, and names it in the message only.
                for key in limit:
                    if error.message.startswith(repr(key)) and (*path, key) not in self._document.unreadable:
                        yield self._missing(key, schema["properties"][key], path, value)
            case "uniqueItems":
                yield from self._repeated(value, path)
            case "minItems" | "maxItems" | "minProperties" | "maxProperties":
                if not any(unreadable[: len(path)] == path for unreadable in self._document.unreadable):
                    yield self._count(error.validator, limit, len(value), path)
            case "type":
                yield self._wrong_type(schema, value, path)
            case _:
                yield self._bad_scalar(error, path)

    def _bad_scalar(self, error: ValidationError, path: Path) -> Diagnostic:
        schema: Any = error.schema
        limit: Any = error.validator_value
        value: Any = error.instance
        name = dotted(path)
        match error.validator:
            case "enum" | "const":
                return self._not_allowed(schema, value, path)
            case "x-format":
                problem = check_format(limit, value)
                assert problem is not None
                return self._format_problem(problem, value, path)
            case "x-aboveZero":
                word = "longer" if schema["x-format"] == "duration" else "larger"
                return self._document.error_at(path, "P307", f"{name}: must be {word} than 0", limit)
            case "minLength":
                return self._document.error_at(path, "P206", f"{name} is empty", example_help(schema))
            case "maxLength":
                message = f"{name} has {len(value)} characters; at most {limit} are allowed"
                return self._document.error_at(path, "P206", message, "make it shorter")
            case "pattern":
                return self._document.error_at(path, "P205", f"{name} cannot be {shown(value)}", example_help(schema))
            case rule:
                word = {"minimum": "at least", "maximum": "at most"}[str(rule)]
                message = f"{name} must be {word} {limit}, not {shown(value)}"
                help = "remove it for no limit" if schema.get("x-default") == "no limit" else example_help(schema)
                return self._document.error_at(path, "P206", message, help)

    def _repeated(self, items: list[Any], path: Path) -> Iterator[Diagnostic]:
        seen: set[tuple[type, object]] = set()
        for position, item in enumerate(items):
            # Lists and maps among the items are a wrong type already.
            if isinstance(item, (dict, list)):
                continue
            if (type(item), item) in seen:
                message = f"{dotted(path)} has {shown(item)} twice"
                yield self._document.error_at((*path, position), "P207", message, "remove one of the two")
            seen.add((type(item), item))

    def _count(self, rule: str, limit: int, count: int, path: Path) -> Diagnostic:
        noun = "item" if rule.endswith("Items") else "key"
        if rule.startswith("max"):
            message = f"{dotted(path)} has {count} {noun}s; at most {limit} are allowed"
            return self._document.error_at(path, "P206", message, "make it shorter", at_key=True)
        message = f"{dotted(path)} has too few {noun}s" if count else f"{dotted(path)} is empty"
        return self._document.error_at(path, "P206", message, f"it needs at least {limit} {noun}", at_key=True)

    def _wrong_type(self, schema: JsonObject, value: object, path: Path) -> Diagnostic:
        if value is None:
            help = example_help(schema)
            return self._document.error_at(path, "P203", f"{dotted(path)} has no value", help, at_key=True)
        is_collection = isinstance(value, (dict, list))
        if "enum" in schema and not is_collection:
            return self._not_allowed(schema, value, path)
        source = self._source(value, path)
        message = f"{dotted(path)} must be {expected(schema)}, not {f'`{source}`' if source else shown(value)}"
        help = switch_help(value, path, _SCHEMAS.get(self._kind, POLICY_SCHEMA)) or type_help(schema, value, source)
        if isinstance(value, dict) and path[-2:-1] in _OF_WHOLE_NAMES:
            help = f"write each name in one piece: `{_joined(str(path[-1]), value)}: ...`"
        return self._document.error_at(path, "P203", message, help, at_key=is_collection)

    def _source(self, value: object, path: Path) -> str | None:
        """Return a number as the file has it, for `2.5e8` and `1.10` have other texts once they are read."""
        if type(value) not in (int, float):
            return None
        span = self._document.span_of(path)
        line = self._document.text.split("\n")[span.line - 1]
        source = line[span.column - 1 : span.end_column - 1]
        return source if span.line == span.end_line and plain_scalar(source) == value else None

    def _not_allowed(self, schema: JsonObject, value: object, path: Path) -> Diagnostic:
        if path == ("version",):
            help = "write `version: 1`; a newer format needs a newer maintainer"
            return self._document.error_at(path, "P209", f"version {shown(value)} of the format is not known", help)
        allowed = [written(choice) for choice in schema["enum"] if choice is not None]
        message = f"{dotted(path)} must be {either([f'`{choice}`' for choice in allowed])}, not {shown(value)}"
        return self._document.error_at(path, "P204", message, enum_help(allowed, value))

    def _missing(self, key: str, schema: JsonObject, path: Path, present: JsonObject) -> Diagnostic:
        examples, former = schema.get("examples"), _FORMER_NAMES.get(key)
        help = f"add `{key}: {written(examples[0])}`" if examples else None
        if former in present:
            arguments = ", and move what is below `kwargs` beside it" if "kwargs" in present else ""
            help = f"rename `{former}` to `{key}`{arguments}"
        return self._document.error_at(path, "P202", f"`{key}` is missing {_where(path)}", help, at_key=True)

    def _format_problem(self, problem: Refusal, value: object, path: Path) -> Diagnostic:
        span = self._document.span_of(path)
        if problem.offset is not None:
            span = self._part_of(span, str(value), problem.offset, problem.length)
        message = f"{dotted(path)}: {problem.message}"
        return Diagnostic(problem.code, problem.severity, message, self._document.file, span, problem.help)

    def _part_of(self, span: SourceSpan, value: str, offset: int, length: int) -> SourceSpan:
        """Narrow a span to a part of its text, where the file shows the text as it is (no escapes, one line)."""
        line = self._document.text.split("\n")[span.line - 1]
        start = span.column - 1 + (line[span.column - 1 : span.column] in ('"', "'"))
        if span.line != span.end_line or line[start : start + len(value)] != value:
            return span
        first = start + min(offset, max(len(value) - 1, 0)) + 1
        return SourceSpan(span.line, first, span.line, max(min(first + length, start + len(value) + 1), first + 1))


def _joined(name: str, value: JsonObject) -> str:
    """Return the first name that maps in maps spell; the depth is bounded by the reader."""
    part, inner = next(iter(value.items()), ("NAME", None))
    return _joined(f"{name}.{part}", inner) if isinstance(inner, dict) else f"{name}.{part}"


def _where(path: Path) -> str:
    return f"in {dotted(path)}" if path else "at the top level"


TEMPLATE = re.compile(r"\$\{(?!env:)[^{}]*\}|\{\{[^{}]*\}\}|\{%.*?%\}")
"""How shells and other tools write what they fill in; nothing here does."""


def _unfilled(data: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield the names of tables, owners and tags that hold a template, and the template."""
    for path, text in named_texts(data):
        if path[0] in ("table", "owner", "tags", "match") and (template := TEMPLATE.search(text)):
            yield path, template[0]


def _texts_with_variables(value: object, path: Path) -> Iterator[Path]:
    """Yield the places of texts that hold ``${env:``; the depth is bounded by the reader."""
    if isinstance(value, str) and "${env:" in value:
        yield path
    elif isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _texts_with_variables(inner, (*path, key))
