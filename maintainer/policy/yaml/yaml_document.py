"""Hold a YAML file after reading: plain data, and the place of every key and value in it.

Plain (unquoted) scalars are read as YAML 1.2 core does; what two readers would read in two ways is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from maintainer.policy.diagnostics import START_OF_FILE, Diagnostic, Severity, SourceSpan

# What YAML calls printable, less: NEL, LS and PS (line breaks to YAML, not to editors), a byte order mark inside
# the text, and the direction marks that make a line look other than it is. A lone CR is refused as well.
FORBIDDEN = re.compile(
    "[^\t\n\x20-\x7e\xa0-\u2027\u202f-\u2065\u206a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
"""Neither a file nor what its escapes stand for (``"\\0"``, ``"\\x1b"``) may hold one of these."""

_WORDS: dict[str, bool | None] = {"": None, "~": None}
for _word, _value in (("null", None), ("true", True), ("false", False)):
    _WORDS |= dict.fromkeys((_word, _word.title(), _word.upper()), _value)
_MAYBE_NUMBER = frozenset("0123456789+-.")
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9]*)(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_LEADING_ZERO = re.compile(r"([-+]?)0+([0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)")
_OTHER_BASE = re.compile(r"[-+]?0(?:x[0-9a-fA-F]+|o[0-7]+|b[01]+)")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF|nan|NaN|NAN)")
_INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Refusal:
    """What is wrong with a text, and how to write it. ``offset`` and ``length`` narrow it to a part, in characters."""

    code: str
    message: str
    help: str | None
    severity: Severity = Severity.ERROR
    offset: int | None = None
    length: int = 1


def refused_character(text: str) -> Refusal | None:
    """Return why a text is refused: the first character in it that no text may hold; None where there is none.

    Texts are printed and kept in records: an escape in one would move a terminal's cursor, turn a line around, or end
    it for one reader and not for another.
    """
    match = FORBIDDEN.search(text)
    if match is None:
        return None
    message = f"the character U+{ord(match[0]):04X} is not allowed"
    return Refusal("Y105", message, "remove it; text may hold line feeds, tabs and what can be seen")


_ODD_SPACES = "\u00a0\u1680\u2000-\u200b\u202f\u205f\u2060\u3000"
_ODD_SPACE = re.compile(rf"^[ ]*([{_ODD_SPACES}])|:([{_ODD_SPACES}])")


def odd_space(text: str) -> Refusal | None:
    """Return why a key or line is refused: a space that only looks like one begins it, or follows its `:`."""
    match = _ODD_SPACE.search(text)
    if match is None:
        return None
    space = match[1] or match[2]
    name = "a no-break space" if space == "\u00a0" else f"the space U+{ord(space):04X}"
    place = "for indentation" if match[1] else "behind `:`"
    return Refusal("Y124", f"{name} is used {place}", "write ordinary spaces; YAML reads this character as a letter")


_CURLY = "\u2018-\u201f\u00ab\u00bb\u2039\u203a"
_IN_CURLY_QUOTES = re.compile(rf"[{_CURLY}]([^{_CURLY}]*)[{_CURLY}]")


def curly_quotes(text: str) -> Refusal | None:
    """Return why a plain text is refused: quotes of a word processor around all of it, which YAML takes for letters."""
    match = _IN_CURLY_QUOTES.fullmatch(text)
    if match is None:
        return None
    message = f"the quotes around `{text[:40]}` are typographic, and would be part of the text"
    return Refusal("Y125", message, f'use straight quotes: `"{match[1][:40]}"`')


def plain_scalar(text: str) -> str | int | float | bool | Refusal | None:
    """Return the value of a plain scalar, or why it is refused.

    ``yes``, ``NO``, ``22:00``, ``1_000`` and ``2024-01-01`` are text. Integers must fit 64 bits, floats must be
    finite. ``010``, ``0x1F``, ``0o17`` and ``0b1`` are refused: YAML 1.1 and 1.2 read them differently.
    """
    if text[:1] not in _MAYBE_NUMBER:
        return _WORDS.get(text, text)
    if len(text) > 400:
        looks_like_number = not text.strip("0123456789+-.eE")
        return _TOO_LARGE if looks_like_number else text
    if _INTEGER.fullmatch(text):
        number = int(text) if len(text) <= 20 else 2**63
        return number if number in _INT64 else _TOO_LARGE
    if _FLOAT.fullmatch(text):
        return _finite(text)
    return _refused_number(text) or text


def _finite(text: str) -> float | Refusal:
    """Read a float; what overflows, or silently becomes zero, is refused."""
    number = float(text)
    mantissa = text.lower().partition("e")[0]
    if number in (float("inf"), float("-inf")) or (number == 0 and mantissa.strip("+-0.")):
        return _TOO_LARGE
    return number


def _refused_number(text: str) -> Refusal | None:
    match = _LEADING_ZERO.fullmatch(text)
    if match:
        meant = match[1].removeprefix("+") + match[2]
        time = re.fullmatch(r"(0[0-9])([0-5][0-9])", text)
        or_time = f", `{time[1]}:{time[2]}` for a time of day" if time else ""
        help = f"write `{meant[:40]}`{or_time}, or put it in quotes if it is text"
        return Refusal("Y117", f"`{text[:40]}` is octal to some readers of YAML and decimal to others", help)
    if _OTHER_BASE.fullmatch(text):
        help = "write it as a decimal number, or put it in quotes if it is text"
        if len(text) < 20:
            sign, digits = (text[0], text[1:]) if text[0] in "+-" else ("", text)
            number = int(digits, 0) * (-1 if sign == "-" else 1)
            help = f"write `{number}`, or put it in quotes if it is text"
        return Refusal("Y117", f"`{text[:40]}` is a number only to some readers of YAML", help)
    if _NOT_FINITE.fullmatch(text):
        return Refusal("Y119", f"`{text}` is not a number that can be used", "write a finite number")
    return None


_TOO_LARGE = Refusal("Y118", "the number is too large or too small to be stored exactly", "numbers have 64 bits")

Path: TypeAlias = "tuple[str | int, ...]"
"""Where a value is in ``Document.data``: keys and list positions from the top; ``()`` is the whole document."""


@dataclass(frozen=True, slots=True)
class YamlDocument:
    r"""One file: text, data, and the spans of its keys and values.

    ``data`` holds only dict, list, str, int, float, bool and None; its dicts are in the order of the file.
    ``file`` is a posix path relative to the project root. ``text`` has no byte order mark and ``\n`` ends its
    lines; it is dropped once the file was checked (`without_text`). ``unreadable`` names values that were refused
    while reading (a duplicate key, an alias, `010`): each has a diagnostic and is left out of ``data``, so that
    later checks neither see it nor call it missing.

    ``marks`` holds four numbers (line, column, end line, end column; all from 0) for each key and each value, as bytes,
    in the order of the file. Paths are derived from it when somebody asks, and kept only for the document that was
    asked last: they take ten times the room of the file, and a project may have ten thousand files.
    """

    file: str
    text: str = field(repr=False)
    data: dict[str, Any]
    marks: bytes = field(repr=False, compare=False)
    unreadable: frozenset[Path] = frozenset()

    def without_text(self) -> YamlDocument:
        """Return the same document less its text, which nothing needs after the checks of the file itself."""
        return replace(self, text="")

    def value_at(self, path: Path) -> object:
        """Return the value of nested maps at ``path``; None where there is none."""
        data: object = self.data
        for key in path:
            data = data.get(key) if isinstance(data, dict) else None
        return data

    @property
    def _spans(self) -> tuple[dict[Path, SourceSpan], dict[Path, SourceSpan]]:
        last = _last_asked.get("document")
        if last is not None and last[0] is self:
            return last[1]
        keys: dict[Path, SourceSpan] = {}
        values: dict[Path, SourceSpan] = {}
        _place((), self.data, iter(memoryview(self.marks).cast("I")), keys, values)
        # One assignment: a reader in another thread sees the old pair or the new one.
        _last_asked["document"] = (self, (keys, values))
        return keys, values

    @property
    def key_spans(self) -> Mapping[Path, SourceSpan]:
        """Spans of keys, by the path of the value that the key names."""
        return self._spans[0]

    def span_of(self, path: Path) -> SourceSpan:
        """Return the span of the value at ``path``, or of the nearest value above it.

        A value that takes no room (``retention:`` with nothing behind it) is shown by its key.
        """
        keys, values = self._spans
        while path:
            span = values.get(path)
            if span is not None:
                empty = (span.line, span.column) == (span.end_line, span.end_column)
                return keys.get(path, span) if empty else span
            path = path[:-1]
        return values.get((), START_OF_FILE)

    def key_span_of(self, path: Path) -> SourceSpan:
        """Return the span of the key that names ``path``; for a list item or the whole, that of the value."""
        return self.key_spans.get(path) or self.span_of(path)

    def error_at(
        self, path: Path, code: str, message: str, help: str | None, *, at_key: bool = False,
        severity: Severity = Severity.ERROR,
    ) -> Diagnostic:  # fmt: skip
        """Return an error about the value at ``path``, or about the key that names it."""
        span = self.key_span_of(path) if at_key else self.span_of(path)
        return Diagnostic(code, severity, message, self.file, span, help)

    def warning_at(self, path: Path, code: str, message: str, help: str, *, at_key: bool = False) -> Diagnostic:
        """Return a warning about the value at ``path``, or about the key that names it."""
        return self.error_at(path, code, message, help, at_key=at_key, severity=Severity.WARNING)


def named_texts(data: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield the texts of a file that name something: a table, a place, an owner, tags, databases; and where each is."""
    match = data.get("match")
    inner = match if isinstance(match, dict) else {}
    values: dict[Path, object] = {(key,): data.get(key) for key in ("table", "state", "owner")}
    lists: dict[Path, object] = {(key,): data.get(key) for key in ("tags", "roots", "databases")}
    lists |= {("match", key): inner.get(key) for key in ("tables", "exclude", "tags")}
    for path, items in lists.items():
        values |= {(*path, at): item for at, item in enumerate(items if isinstance(items, list) else ())}
    yield from ((path, text) for path, text in values.items() if isinstance(text, str))


_last_asked: dict[str, tuple[YamlDocument, tuple[dict[Path, SourceSpan], dict[Path, SourceSpan]]]] = {}


def _place(
    path: Path, value: object, marks: Iterator[int], keys: dict[Path, SourceSpan], values: dict[Path, SourceSpan]
) -> None:
    """Hand out ``marks`` to ``value`` and everything in it; depth is bounded by the reader."""
    values[path] = _next_span(marks)
    if isinstance(value, dict):
        for key, inner in value.items():
            inner_path = (*path, key)
            keys[inner_path] = _next_span(marks)
            _place(inner_path, inner, marks, keys, values)
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            _place((*path, position), inner, marks, keys, values)


def _next_span(marks: Iterator[int]) -> SourceSpan:
    return SourceSpan(next(marks) + 1, next(marks) + 1, next(marks) + 1, next(marks) + 1)
