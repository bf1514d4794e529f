"""Compose data from YAML events, bounded in depth and size, and refuse by name.

What is refused in one place (a duplicate key, an alias, a number with two readings) is reported and left out,
and composing goes on, so that one run shows everything that is wrong with a file. PyYAML's own composer follows
aliases and forgets anchors, and libyaml's has no bound of depth: hence one of our own.
"""

from __future__ import annotations

import sys
from array import array
from typing import Any, Final, NoReturn

import yaml
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from maintainer.model.codec import once
from maintainer.policy.diagnostics import START_OF_FILE, Diagnostic, Severity, SourceSpan
from maintainer.policy.yaml.yaml_document import (
    Path,
    Refusal,
    YamlDocument,
    curly_quotes,
    odd_space,
    plain_scalar,
    refused_character,
)

MAX_DEPTH = 20
MAX_NODES = 10_000
MAX_FINDINGS = 100
"""Per file; what follows is rarely worth reading before the first hundred are fixed."""

_LEFT_OUT: Final = object()
"""A value that was refused; it gets no marks, and no place in the data."""


class _Enough(Exception):
    """A limit was reached, and reported."""


class Composer:
    """Reads one document from a parser's events; ``findings`` are there also when the parser fails."""

    def __init__(self, file: str) -> None:
        self.findings: list[Diagnostic] = []
        self.file = file
        self._events: Any = None
        self._marks: array[int] = array("I")
        self._unreadable: set[Path] = set()
        self._nodes = 0

    def read(self, text: str, parser: type) -> YamlDocument | None:
        """Return the document, or None where the top is not a map or a limit was reached inside it.

        Raises:
            yaml.YAMLError: The parser cannot read the text.
        """
        self._events = parser(text)
        try:
            root = self._root()
        except _Enough:
            return None
        finally:
            self._events.dispose()
        if not isinstance(root, dict):
            return None
        return YamlDocument(self.file, text, root, once(self._marks.tobytes()), once(frozenset(self._unreadable)))

    def _root(self) -> object:
        """Compose the first document, and refuse a second one."""
        root: object = _LEFT_OUT
        documents = 0
        while not isinstance(event := self._next(), StreamEndEvent):
            if isinstance(event, (StreamStartEvent, DocumentEndEvent)):
                continue
            if isinstance(event, DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self._report("Y111", "a second document in one file", event, "one policy per file")
                    break
                continue
            root = self._value(event, ())
            if root is not _LEFT_OUT and not isinstance(root, dict):
                self._refuse_root(root)
        return root

    def _next(self) -> Any:  # noqa: ANN401 (an event; the stubs of PyYAML have no types for their fields)
        event = self._events.get_event()
        if isinstance(event, NodeEvent):
            self._nodes += 1
            if self._nodes > MAX_NODES:
                self._stop("Y116", f"more than {MAX_NODES} values", event, "split the file")
        return event

    def _value(self, event: Any, path: Path) -> object:  # noqa: ANN401
        """Compose the value that begins with an event, and mark its place; `_LEFT_OUT` where it is refused."""
        if isinstance(event, AliasEvent):
            self._refuse_alias(event)
            return _LEFT_OUT
        refused = self._refuses_decoration(event)
        if isinstance(event, ScalarEvent):
            return _LEFT_OUT if refused else self._scalar(event)
        if refused:
            self._skip(event)
            return _LEFT_OUT
        if len(path) >= MAX_DEPTH:
            self._stop("Y115", f"nested more than {MAX_DEPTH} deep", event, "policies are flat")
        self._mark(event)
        return self._map(event, path) if isinstance(event, MappingStartEvent) else self._list(event, path)

    def _scalar(self, event: ScalarEvent) -> object:
        # The style of a plain scalar is None from the pure parser and '' from libyaml.
        refused = refused_character(event.value) or (None if event.style else curly_quotes(event.value))
        value: object = refused or (event.value if event.style else plain_scalar(event.value))
        if isinstance(value, Refusal):
            self._report(value.code, value.message, event, value.help)
            return _LEFT_OUT
        self._mark(event)
        return value

    def _map(self, start: MappingStartEvent, path: Path) -> dict[str, object]:
        node: dict[str, object] = {}
        lines: dict[str, int] = {}
        mark = len(self._marks) - 4
        while not isinstance(event := self._next(), MappingEndEvent):
            before = len(self._marks)
            key = self._key(event, lines, in_brackets=bool(start.flow_style))
            value_event = self._next()
            if key is None:
                self._skip(value_event)
                continue
            if len(lines) == 1 and not start.flow_style:
                # A block map is shown by its first key.
                self._end(mark, event)
            value = self._inner(value_event, (*path, key), before)
            if value is not _LEFT_OUT:
                # Keys come from a small vocabulary: each is held once, however many files there are.
                node[sys.intern(key)] = value
        if start.flow_style:
            self._end(mark, event)
        return node

    def _list(self, start: CollectionStartEvent, path: Path) -> list[object]:
        node: list[object] = []
        mark = len(self._marks) - 4
        while not isinstance(event := self._next(), SequenceEndEvent):
            value = self._inner(event, (*path, len(node)), len(self._marks))
            if value is not _LEFT_OUT:
                node.append(value)
        if start.flow_style:
            self._end(mark, event)
        return node

    def _inner(self, event: Any, path: Path, first_mark: int) -> object:  # noqa: ANN401
        """Compose a value within a map or a list; of one that is refused only the path is kept."""
        value = self._value(event, path)
        if value is _LEFT_OUT:
            self._unreadable.add(path)
            del self._marks[first_mark:]
        return value

    def _key(self, event: Any, lines: dict[str, int], *, in_brackets: bool) -> str | None:  # noqa: ANN401
        """Check a key and mark its place; None where it is refused, and its value is to be skipped."""
        if isinstance(event, AliasEvent):
            self._refuse_alias(event)
            return None
        if not isinstance(event, ScalarEvent):
            help = "keys are text; a template such as `{{ name }}` is not filled in: write the name itself"
            self._report("Y114", "a list or map cannot be a key", event, help if in_brackets else "keys are text")
            self._skip(event)
            return None
        key = event.value
        if self._refuses_decoration(event):
            return None
        odd = refused_character(key) or (None if event.style else odd_space(key) or curly_quotes(key))
        if odd is not None:
            self._report(odd.code, odd.message, event, odd.help)
        elif not event.style and key == "<<":
            self._report("Y109", "merge keys (`<<`) are not allowed", event, "use `extends:` and a profile")
        elif not event.style and not isinstance(plain_scalar(key), str):
            shown = f"`{key[:40]}`" if key else "an empty key"
            self._report("Y114", f"{shown} is not text, and keys are", event, f'put it in quotes: `"{key[:40]}"`')
        elif key in lines:
            help = f"first set on line {lines[key]}; YAML would silently keep only the last"
            self._report("Y108", f"duplicate key `{key[:80]}`", event, help)
        else:
            lines[key] = _marks_of(event)[0] + 1
            self._mark(event)
            return str(key)
        return None

    def _skip(self, event: yaml.Event) -> None:
        depth = 0
        while True:
            depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
            if depth == 0:
                return
            event = self._next()

    def _refuse_root(self, root: object) -> None:
        line, column, end_line, end_column = self._marks[:4]
        span = SourceSpan(line + 1, column + 1, end_line + 1, end_column + 1)
        code, message = "Y113", "the file is not a map of keys"
        if root is None:
            code, message, span = "Y112", "the file is empty", START_OF_FILE
        self.findings.append(Diagnostic(code, Severity.ERROR, message, self.file, span, "start with `version: 1`"))

    def _refuse_alias(self, event: AliasEvent) -> None:
        name = str(event.anchor)[:40]
        help = f'put text that begins with `*` in quotes: `"*{name}"`; settings are shared with `extends:`'
        self._report("Y109", f"the alias `*{name}` is not allowed", event, help)

    def _refuses_decoration(self, event: Any) -> bool:  # noqa: ANN401
        """Report an anchor or a tag. An anchor is only noise, a tag changes what the value is."""
        if event.anchor is not None:
            help = "write the value where it is needed; settings are shared with `extends:` and a profile"
            self._report("Y109", f"the anchor `&{event.anchor[:40]}` is not allowed", event, help)
        if event.tag is None:
            return False
        # As people write it: `!!str` and not its long name.
        tag = event.tag.replace("tag:yaml.org,2002:", "!!")[:60]
        self._report("Y110", f"the tag `{tag}` is not allowed", event, "remove the tag")
        return True

    def _mark(self, event: NodeEvent) -> None:
        """Note the place of a node. Ends of block scalars and collections differ between parsers: one character."""
        line, column, end_line, end_column = _marks_of(event)
        if isinstance(event, ScalarEvent) and event.style not in ("|", ">"):
            self._marks.extend((line, column, end_line, end_column))
        else:
            self._marks.extend((line, column, line, column + 1))

    def _end(self, mark: int, event: yaml.Event) -> None:
        self._marks[mark + 2 : mark + 4] = array("I", _marks_of(event)[2:])

    def _report(self, code: str, message: str, event: yaml.Event, help: str | None) -> None:
        line, column, end_line, end_column = _marks_of(event)
        if not isinstance(event, (ScalarEvent, AliasEvent)) or end_line != line or end_column <= column:
            end_line, end_column = line, column + 1
        span = SourceSpan(line + 1, column + 1, end_line + 1, end_column + 1)
        self.findings.append(Diagnostic(code, Severity.ERROR, message, self.file, span, help))
        if len(self.findings) >= MAX_FINDINGS:
            raise _Enough

    def _stop(self, code: str, message: str, event: yaml.Event, help: str) -> NoReturn:
        self._report(code, message, event, help)
        raise _Enough


def _marks_of(event: yaml.Event) -> tuple[int, int, int, int]:
    """Return line, column, end line and end column, all from 0."""
    # Optional only in the stubs: an event that comes from a parser has both.
    start: Any = event.start_mark
    end: Any = event.end_mark
    return start.line, start.column, end.line, end.column
