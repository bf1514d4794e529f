"""Builds data from YAML events: a loop with a stack, bounded in depth and size, that refuses by name.

What is refused in one place (a duplicate key, an alias, a number with two readings) is reported and left out,
and building goes on, so that one run shows everything that is wrong with a file.
"""

from __future__ import annotations

import sys
from array import array
from typing import Any, Final

import yaml
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    DocumentStartEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceStartEvent,
)

from maintainer.policy.diagnostics.diagnostics import START_OF_FILE, Diagnostic, Severity, Span
from maintainer.policy.yaml.scalars import Refusal, plain_scalar, refused_character
from maintainer.policy.yaml.yaml_document import Document, Path

MAX_DEPTH = 20
MAX_NODES = 10_000
MAX_FINDINGS = 100
"""Per file; what follows is rarely worth reading before the first hundred are fixed."""

_LEFT_OUT: Final = object()
"""A value that was refused; it gets no marks, and no place in the data."""

_NO_KEY: Final = object()
"""In a map: the next node is a key."""


class _Open:
    """A map or list whose end has not come yet. ``ignored`` ones are walked through and kept nowhere."""

    __slots__ = ("flow", "ignored", "key", "key_mark", "lines", "mark", "node", "path")

    def __init__(self, node: dict[str, Any] | list[Any], path: Path, mark: int, flow: bool, ignored: bool) -> None:
        self.node = node
        self.path = path
        self.mark = mark
        self.flow = flow
        self.ignored = ignored
        self.key: object = _NO_KEY
        self.key_mark = 0
        self.lines: dict[str, int] = {}

    @property
    def wants_key(self) -> bool:
        """Whether the next node is a key."""
        return self.key is _NO_KEY and isinstance(self.node, dict)


class TreeBuilder:
    """Takes events one by one; afterwards holds the data, the places and the findings of one document."""

    def __init__(self, file: str) -> None:
        self.findings: list[Diagnostic] = []
        self._file = file
        self._root: object = None
        self._marks: array[int] = array("I")
        self._stack: list[_Open] = []
        self._unreadable: set[Path] = set()
        self._nodes = 0
        self._documents = 0

    def document(self, text: str) -> Document | None:
        """Return what was built, or None where the top is not a map or building was stopped inside it."""
        if not isinstance(self._root, dict) or self._stack:
            return None
        return Document(self._file, text, self._root, self._marks, frozenset(self._unreadable))

    def take(self, event: yaml.Event) -> bool:
        """Take the next event; False when enough was seen and no more may be handed in."""
        if isinstance(event, NodeEvent):
            self._nodes += 1
            if self._nodes > MAX_NODES:
                return self._stop("Y116", f"more than {MAX_NODES} values", event, "split the file")
            if isinstance(event, ScalarEvent):
                self._take_scalar(event)
            elif isinstance(event, AliasEvent):
                self._take_alias(event)
            elif isinstance(event, (MappingStartEvent, SequenceStartEvent)):
                self._open(event)
                if len(self._stack) > MAX_DEPTH:
                    return self._stop("Y115", f"nested more than {MAX_DEPTH} deep", event, "policies are flat")
        elif isinstance(event, CollectionEndEvent):
            self._close(event)
        elif isinstance(event, DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                return self._stop("Y111", "a second document in one file", event, "one policy per file")
        return len(self.findings) < MAX_FINDINGS

    def _take_scalar(self, event: ScalarEvent) -> None:
        parent = self._stack[-1] if self._stack else None
        if parent is not None and parent.wants_key:
            self._take_key(parent, event)
            return
        if parent is not None and (parent.ignored or parent.key is _LEFT_OUT):
            parent.key = _NO_KEY
            return
        # The style of a plain scalar is None from the pure parser and '' from libyaml.
        value: object = refused_character(event.value) or (event.value if event.style else plain_scalar(event.value))
        if self._refuses_decoration(event):
            value = _LEFT_OUT
        elif isinstance(value, Refusal):
            self._report(value.code, value.message, event, value.help)
            value = _LEFT_OUT
        self._mark(event)
        self._attach(parent, value)

    def _take_key(self, parent: _Open, event: ScalarEvent) -> None:
        """Check a key and remember it; a refused one makes the map skip the value that follows."""
        parent.key = _LEFT_OUT
        if parent.ignored:
            return
        key = event.value
        if self._refuses_decoration(event):
            return
        if (refusal := refused_character(key)) is not None:
            self._report(refusal.code, refusal.message, event, refusal.help)
            return
        if not event.style:
            if key == "<<":
                self._report("Y109", "merge keys (`<<`) are not allowed", event, "use `extends:` and a profile")
                return
            if not isinstance(plain_scalar(key), str):
                shown = f"`{key[:40]}`" if key else "an empty key"
                self._report("Y114", f"{shown} is not text, and keys are", event, f'put it in quotes: `"{key[:40]}"`')
                return
        if key in parent.lines:
            help = f"first set on line {parent.lines[key]}; YAML would silently keep only the last"
            self._report("Y108", f"duplicate key `{key[:80]}`", event, help)
            return
        parent.lines[key] = _marks_of(event)[0] + 1
        parent.key = key
        parent.key_mark = len(self._marks)
        self._mark(event)
        if len(parent.lines) == 1 and not parent.flow:
            # A block map is shown by its first key.
            self._marks[parent.mark + 2 : parent.mark + 4] = array("I", _marks_of(event)[2:])

    def _take_alias(self, event: AliasEvent) -> None:
        parent = self._stack[-1] if self._stack else None
        ignored = parent is not None and (parent.ignored or parent.key is _LEFT_OUT)
        if not ignored:
            name = str(event.anchor)[:40]
            self._report("Y109", f"the alias `*{name}` is not allowed", event, _alias_help(name))
        if parent is not None and parent.wants_key:
            parent.key = _LEFT_OUT
        elif ignored and parent is not None:
            parent.key = _NO_KEY
        else:
            self._mark(event)
            self._attach(parent, _LEFT_OUT)

    def _open(self, event: MappingStartEvent | SequenceStartEvent) -> None:
        parent = self._stack[-1] if self._stack else None
        ignored = parent is not None and (parent.ignored or parent.key is _LEFT_OUT)
        if parent is not None and parent.wants_key and not ignored:
            self._report("Y114", "a list or map cannot be a key", event, "keys are text")
            ignored = True
        elif not ignored and self._refuses_decoration(event):
            ignored = True
            self._mark(event)
        elif not ignored:
            self._mark(event)
        node: dict[str, Any] | list[Any] = {} if isinstance(event, MappingStartEvent) else []
        path = () if parent is None or ignored else (*parent.path, _position(parent))
        self._stack.append(_Open(node, path, len(self._marks) - 4, bool(event.flow_style), ignored))

    def _close(self, event: CollectionEndEvent) -> None:
        done = self._stack.pop()
        parent = self._stack[-1] if self._stack else None
        if parent is not None and parent.wants_key:
            parent.key = _LEFT_OUT
        elif parent is not None and (parent.ignored or parent.key is _LEFT_OUT):
            parent.key = _NO_KEY
        elif done.ignored:
            self._attach(parent, _LEFT_OUT)
        else:
            if done.flow:
                self._marks[done.mark + 2 : done.mark + 4] = array("I", _marks_of(event)[2:])
            self._attach(parent, done.node)

    def _attach(self, parent: _Open | None, value: object) -> None:
        """Put a value where it belongs, or take back the marks of one that is left out."""
        if parent is None:
            if value is not _LEFT_OUT:
                self._check_root(value)
            return
        if value is _LEFT_OUT:
            self._unreadable.add((*parent.path, _position(parent)))
            at = parent.key_mark if isinstance(parent.node, dict) else len(self._marks) - 4
            del self._marks[at:]
        elif isinstance(parent.node, dict):
            # Keys come from a small vocabulary: each is held once, however many files there are.
            parent.node[sys.intern(str(parent.key))] = value
        else:
            parent.node.append(value)
        parent.key = _NO_KEY

    def _check_root(self, value: object) -> None:
        self._root = value
        if not isinstance(value, dict) and self._marks:
            line, column, end_line, end_column = self._marks[:4]
            span = Span(line + 1, column + 1, end_line + 1, end_column + 1)
            code, message = "Y113", "the file is not a map of keys"
            if value is None:
                code, message, span = "Y112", "the file is empty", START_OF_FILE
            self.findings.append(Diagnostic(code, Severity.ERROR, message, self._file, span, "start with `version: 1`"))

    def _refuses_decoration(self, event: ScalarEvent | MappingStartEvent | SequenceStartEvent) -> bool:
        """Report an anchor or a tag. An anchor is only noise, a tag changes what the value is."""
        if event.anchor is not None:
            self._report("Y109", f"the anchor `&{event.anchor[:40]}` is not allowed", event, _ANCHOR_HELP)
        if event.tag is not None:
            self._report("Y110", f"the tag `{_short_tag(event.tag)}` is not allowed", event, "remove the tag")
            return True
        return False

    def _mark(self, event: NodeEvent) -> None:
        """Note the place of a node. Ends of block scalars and collections differ between parsers: one character."""
        line, column, end_line, end_column = _marks_of(event)
        if isinstance(event, ScalarEvent) and event.style not in ("|", ">"):
            self._marks.extend((line, column, end_line, end_column))
        else:
            self._marks.extend((line, column, line, column + 1))

    def _report(self, code: str, message: str, event: yaml.Event, help: str) -> None:
        line, column, end_line, end_column = _marks_of(event)
        if not isinstance(event, (ScalarEvent, AliasEvent)) or end_line != line or end_column <= column:
            end_line, end_column = line, column + 1
        span = Span(line + 1, column + 1, end_line + 1, end_column + 1)
        self.findings.append(Diagnostic(code, Severity.ERROR, message, self._file, span, help))

    def _stop(self, code: str, message: str, event: yaml.Event, help: str) -> bool:
        self._report(code, message, event, help)
        return False


def _marks_of(event: yaml.Event) -> tuple[int, int, int, int]:
    """Line, column, end line and end column, all from 0."""
    # Optional only in the stubs: an event that comes from a parser has both.
    start: Any = event.start_mark
    end: Any = event.end_mark
    return start.line, start.column, end.line, end.column


_ANCHOR_HELP = "write the value where it is needed; settings are shared with `extends:` and a profile"


def _alias_help(name: str) -> str:
    return f'put text that begins with `*` in quotes: `"*{name}"`; settings are shared with `extends:`'


def _short_tag(tag: str) -> str:
    """The tag as people write it: ``!!str`` and not its long name."""
    return tag.replace("tag:yaml.org,2002:", "!!")[:60]


def _position(parent: _Open) -> str | int:
    """The key or list position that the next value of ``parent`` takes."""
    return str(parent.key) if isinstance(parent.node, dict) else len(parent.node)
