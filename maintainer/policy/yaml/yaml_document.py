"""Hold a YAML file after reading: plain data, and the place of every key and value in it."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from maintainer.policy.diagnostics.diagnostics import START_OF_FILE, Span

Path: TypeAlias = "tuple[str | int, ...]"
"""Where a value is in ``Document.data``: keys and list positions from the top; ``()`` is the whole document."""


@dataclass(frozen=True)
class Document:
    r"""One file: text, data, and the spans of its keys and values.

    ``data`` holds only dict, list, str, int, float, bool and None; its dicts are in the order of the file.
    ``file`` is a posix path relative to the project root. ``text`` has no byte order mark and ``\n`` ends its
    lines; it is dropped once the file was checked (`without_text`). ``unreadable`` names values that were refused
    while reading (a duplicate key, an alias, `010`): each has a diagnostic and is left out of ``data``, so that
    later checks neither see it nor call it missing.

    ``marks`` holds four numbers (line, column, end line, end column; all from 0) for each key and each value
    in the order of the file. Paths are derived from it when somebody asks, and kept only for the document that was
    asked last: they take ten times the room of the file, and a project may have ten thousand files.
    """

    file: str
    text: str = field(repr=False)
    data: dict[str, Any]
    marks: array[int] = field(repr=False, compare=False)
    unreadable: frozenset[Path] = frozenset()

    def without_text(self) -> Document:
        """Return the same document less its text, which nothing needs after the checks of the file itself."""
        return replace(self, text="")

    @property
    def _spans(self) -> tuple[dict[Path, Span], dict[Path, Span]]:
        last = _last_asked.get("document")
        if last is not None and last[0] is self:
            return last[1]
        keys: dict[Path, Span] = {}
        values: dict[Path, Span] = {}
        _place((), self.data, iter(self.marks), keys, values)
        # One assignment: a reader in another thread sees the old pair or the new one.
        _last_asked["document"] = (self, (keys, values))
        return keys, values

    @property
    def key_spans(self) -> Mapping[Path, Span]:
        """Spans of keys, by the path of the value that the key names."""
        return self._spans[0]

    @property
    def value_spans(self) -> Mapping[Path, Span]:
        """Spans of values; of a block map its first key, of a block list its first dash."""
        return self._spans[1]

    def span_of(self, path: Path) -> Span:
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

    def key_span_of(self, path: Path) -> Span:
        """Return the span of the key that names ``path``; for a list item or the whole, that of the value."""
        return self.key_spans.get(path) or self.span_of(path)


_last_asked: dict[str, tuple[Document, tuple[dict[Path, Span], dict[Path, Span]]]] = {}


def _place(path: Path, value: object, marks: Iterator[int], keys: dict[Path, Span], values: dict[Path, Span]) -> None:
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


def _next_span(marks: Iterator[int]) -> Span:
    return Span(next(marks) + 1, next(marks) + 1, next(marks) + 1, next(marks) + 1)
