"""Check texts for more than their type (a size, a date, a time zone, a predicate), and build jsonschema's validators.

Keywords of our own begin with ``x-``. jsonschema is imported late: most commands end before they need it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date, datetime, timedelta
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, available_timezones

from maintainer.policy.diagnostics import Severity, did_you_mean, nearest, nearest_table
from maintainer.policy.predicate.partition_predicate import parse_predicate
from maintainer.policy.predicate.predicate_grammar import PredicateError
from maintainer.policy.schema.known_expectations import EXPECTATIONS, REFUSED_EXPECTATIONS, WITHOUT_SPARK
from maintainer.policy.schema.schema_keys import MANY_TABLES, JsonObject, load_schema, meant_time, resolve_reference
from maintainer.policy.yaml.yaml_document import Refusal
from maintainer.units import UnitError, parse_duration, parse_size, spelled_size

if TYPE_CHECKING:
    from jsonschema import ValidationError


_LONGEST_REMEMBERED = 200


def check_format(format: str, value: str | int | float) -> Refusal | None:
    """Return what is wrong with a value of this ``x-format``, None if nothing is.

    The message begins with a lower-case sentence that stands behind the dotted name of the key.
    """
    text = str(value)
    return _CHECKS[format](text) if len(text) > _LONGEST_REMEMBERED else _remembered(format, text)


@lru_cache(maxsize=512)
def _remembered(format: str, text: str) -> Refusal | None:
    """Files of one project repeat a few values: `7d`, `256MiB`, the same predicate."""
    return _CHECKS[format](text)


_TINY_BYTES = 1 << 20
"""A number without a unit below this was hardly meant as bytes."""


def _check_unit(read: Callable[[str], int], text: str) -> Refusal | None:
    try:
        read(text)
    except UnitError as error:
        return Refusal("P205", error.message, error.help)
    return None


def _check_size(text: str) -> Refusal | None:
    if (refused := _check_unit(parse_size, text)) is not None:
        return refused
    if text.isdecimal() and 0 < int(text) < _TINY_BYTES:
        help = f"write `{text}MiB`, or `{text}B` if bytes are meant"
        return Refusal("P322", f"`{text}` is read as {text} bytes", help, Severity.WARNING)
    meant = spelled_size(text)
    if meant is None:
        return None
    message = f"`{text}` is read as `{meant}`, as Spark does"
    return Refusal("P301", message, f"write `{meant}` to say so", Severity.WARNING)


def _check_time(text: str) -> Refusal | None:
    if re.fullmatch(r"([01][0-9]|2[0-3]):[0-5][0-9]", text):
        return None
    help = "write a time of day with two digits each, like `22:00`"
    if text == "24:00":
        help = "write `00:00`; a window from `22:00` to `00:00` ends at midnight"
    elif meant := meant_time(text):
        help = f"write `{meant}`"
    return Refusal("P205", f"{_quoted(text)} is not a time of day", help)


def _check_date(text: str) -> Refusal | None:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return Refusal("P205", f"{_quoted(text)} is not a date", "write year, month and day, like `2026-12-01`")
    try:
        date.fromisoformat(text)
    except ValueError:
        return Refusal("P313", f"{_quoted(text)} is not in the calendar", "check the month and the day")
    return None


_ABBREVIATION = re.compile(r"[A-Z]{2,5}([+-][0-9:]+)?")


_IANA_NAME = re.compile(r"[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*")
"""A small letter begins what each machine has of its own, such as ``localtime``."""


_ONE_OFFSET = re.compile(r"[EHM]ST|Etc/GMT[+-][1-9][0-9]?")


def _one_offset(name: str, zone: ZoneInfo) -> Refusal | None:
    """Warn of a zone without summer time where its name lets people expect one, or the opposite sign."""
    if not _ONE_OFFSET.fullmatch(name):
        return None
    hours = (datetime(2026, 7, 1, tzinfo=zone).utcoffset() or timedelta()) // timedelta(hours=1)
    help = "write a place, like `Europe/Berlin`; where no summer time is meant, one that has none"
    return Refusal("P314", f"`{name}` is UTC{hours:+} all year", help, Severity.WARNING)


def _check_timezone(name: str) -> Refusal | None:
    if name == "UTC":
        return None
    with suppress(OSError, ValueError, KeyError):
        # The characters first: ZoneInfo reads a file of that name.
        if _IANA_NAME.fullmatch(name):
            return _one_offset(name, ZoneInfo(name))
    if _ABBREVIATION.fullmatch(name):  # a near one would be the time of another place
        help = "abbreviations and offsets are no time zones: write a place, like `Europe/Berlin`; or `UTC`"
    elif near := nearest_table(name, _timezones()):
        help = did_you_mean(name, near)
    else:
        help = "write an IANA name, like `Europe/Berlin` or `UTC`"
    return Refusal("P314", f"{_quoted(name)} is not a time zone", help)


@lru_cache(maxsize=1)
def _timezones() -> frozenset[str]:
    """All names; the standard library looks through folders for them on every call."""
    return frozenset(filter(_IANA_NAME.fullmatch, available_timezones()))


def _check_predicate(text: str) -> Refusal | None:
    try:
        parse_predicate(text)
    except PredicateError as error:
        return Refusal("P310", error.message, error.help, Severity.ERROR, error.offset, error.length)
    return None


_WHOLE_NAME = re.compile(r"(?:`(?:[^`]|``)+`|[^.`]+)(?:\.(?:`(?:[^`]|``)+`|[^.`]+))*")


def _check_table(text: str) -> Refusal | None:
    if not text.isprintable():
        return Refusal("P205", "a table's name or path has a character that cannot be shown", "remove it")
    if text != text.strip():
        return Refusal("P205", "a table's name or path begins or ends with a blank", f"write {_quoted(text.strip())}")
    if "/" not in text and not _WHOLE_NAME.fullmatch(text):
        help = (
            "join the parts with dots; put a part with a dot or a back-tick in back-ticks, its own back-ticks doubled"
        )
        return Refusal("P205", f"{_quoted(text)} is not a table's name", help)
    if "/" not in text and re.search(r"[*?\[]", text):
        help = f'for many tables write `match: {{tables: ["{text[:60]}"]}}`; {MANY_TABLES}'
        return Refusal("P205", f"{_quoted(text)} is a pattern, and `table` names one table", help)
    return None


_NOT_OF_A_GLOB = re.compile(r"^(?:[!^%]|\.\*)|%$|,\s|\{[^{}]*,[^{}]*\}|^\s|\s$")


def _check_glob(text: str) -> Refusal | None:
    """Refuse lists, negations and patterns of other tools: as a glob they fit no table, and exclude none."""
    if not _NOT_OF_A_GLOB.search(text):
        return None
    help = "write each glob as an item of its own, with `*` for any characters, and what is left out under `exclude`"
    return Refusal("P205", f"{_quoted(text)} is read as one glob, which fits no table", help)


def _nearest_expectation(name: str) -> str | None:
    """Return the expectation that was likely meant, never its opposite: `not` stays where it is or was meant to be."""
    # Great Expectations writes its classes as `ExpectColumnValuesToNotBeNull`.
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).casefold()
    words = sorted(name.split("_"))
    same_words = [known for known in EXPECTATIONS if sorted(known.split("_")) == words]
    negated = any(word.startswith("not") for word in words)
    same_sense = [known for known in EXPECTATIONS if ("not" in known.split("_")) == negated]
    return same_words[0] if same_words else nearest(name, same_sense)


def _check_expectation(name: str) -> Refusal | None:
    if name in REFUSED_EXPECTATIONS:
        return Refusal("P316", f"`{name}` cannot be used: {REFUSED_EXPECTATIONS[name]}", _EXPECTATION_HELP)
    if name in WITHOUT_SPARK:
        return Refusal(
            "P316", f"`{name}` cannot be used: Great Expectations has it, but not for Spark", WITHOUT_SPARK[name]
        )
    if name in EXPECTATIONS:
        return None
    near = _nearest_expectation(name)
    help = did_you_mean(name, near) if near else _EXPECTATION_HELP
    return Refusal("P311", f"Great Expectations has no {_quoted(name)}", help)


_EXPECTATION_HELP = "write a registered name, like `expect_column_values_to_not_be_null`"

_CHECKS: dict[str, Callable[[str], Refusal | None]] = {
    "size": _check_size,
    "duration": partial(_check_unit, parse_duration),
    "time": _check_time,
    "date": _check_date,
    "timezone": _check_timezone,
    "predicate": _check_predicate,
    "table": _check_table,
    "glob": _check_glob,
    "expectation": _check_expectation,
}


def _quoted(text: str) -> str:
    return f"`{text[:60]}...`" if len(text) > 63 else f"`{text}`"


_FOR_PEOPLE = frozenset({"$schema", "$id", "title", "description", "default", "definitions"})
"""Keywords without a rule, which messages do not need either."""

_FOR_EDITORS = frozenset({"not", "dependencies"})
"""Keywords that editors need; `schema_check` says the same for each kind of file in better words."""


@lru_cache(maxsize=8)
def schema_validator(name: str) -> Any:  # noqa: ANN401 (jsonschema's own class, imported late)
    """Return jsonschema's validator of one of our schema files. An integer is never a boolean or ``1.0``."""
    import jsonschema

    draft = jsonschema.Draft7Validator
    strict = draft.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    )
    # Untyped in the stubs; what comes out is a class like the one that went in.
    extend: Any = jsonschema.validators.extend
    keywords = {"x-format": _check_format, "x-aboveZero": _check_above_zero}
    validator = extend(draft, keywords, type_checker=strict)
    return validator(_without_references(load_schema(name), name))


def _without_references(schema: JsonObject, name: str) -> JsonObject:
    """Put what each ``$ref`` names in its place: following them takes as long as all other checks together."""
    if "$ref" in schema:
        target, home = resolve_reference(schema["$ref"], name)
        return _without_references(target, home)
    inlined: JsonObject = {}
    for keyword, value in schema.items():
        if keyword in _FOR_PEOPLE | _FOR_EDITORS:
            continue
        if keyword in ("pattern", "minimum") and schema.get("x-format") in ("size", "duration"):
            # For editors, which know no ``x-format``: ours accepts a little more, and says what is wrong.
            continue
        if keyword == "properties":
            value = {key: _without_references(inner, name) for key, inner in value.items()}
        elif keyword == "pattern":
            # `$` must not match before a final line feed, as in ECMAScript.
            value = re.sub(r"(?<!\\)\$(?=\)*$)", r"\\Z", value)
        elif isinstance(value, dict):
            value = _without_references(value, name)
        inlined[keyword] = value
    return inlined


def _check_format(_: object, format: str, value: object, __: JsonObject) -> Iterator[ValidationError]:
    """Check the keyword ``x-format``; whoever shows the error asks `check_format` for the words."""
    from jsonschema import ValidationError

    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        problem = check_format(format, value)
        if problem is not None:
            yield ValidationError(problem.message)


def _check_above_zero(_: object, help: str, value: object, schema: JsonObject) -> Iterator[ValidationError]:
    """Check the keyword ``x-aboveZero``: a size or duration of nothing. It holds what to write instead."""
    from jsonschema import ValidationError

    with suppress(UnitError):
        if isinstance(value, (str, int)):
            number = parse_size(value) if schema["x-format"] == "size" else parse_duration(str(value))
            if number == 0:
                yield ValidationError(help)
