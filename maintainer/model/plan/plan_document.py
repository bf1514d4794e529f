"""Plans as documents: canonical JSON with its own digest, read back exactly or refused.

The document is the model, field by field, with some figures counted for people and pipelines (``state``, ``totals``).
It holds no SQL text: applying it runs none. It is read member by member, so that a long one is never in memory as a
whole.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, NoReturn, TextIO, assert_never

from maintainer.errors import Refused
from maintainer.model.codec import DecodeError, canonical_json, decode, encode
from maintainer.model.plan.plan import Plan, TablePlan
from maintainer.model.plan.steps import (
    BatchedStep,
    SetPropertiesStep,
    Step,
    VacuumStep,
)

CHARACTERS_READ_AT_ONCE = 1 << 16


class JsonMembers:
    """The members of the one object in a file, in its order; a name that is written twice is an error.

    Args:
        file: The text.
        max_characters: A longer text is not read to its end.
    """

    def __init__(self, file: TextIO, max_characters: int) -> None:
        self._file = file
        self._text, self._at = "", 0
        self._num_read, self._max_characters = 0, max_characters

    def is_next(self, character: str) -> bool:
        """Tell whether this comes next, behind blanks; the empty text is the end of the file."""
        while self._at < len(self._text) or self._read_on():
            if self._text[self._at] not in " \t\n\r":
                return self._text[self._at] == character
            self._at += 1
        return not character

    def names(self) -> Iterator[str]:
        """Yield the name of each member; whoever asks takes its `value`, or its `elements`, before the next.

        Raises:
            ValueError: The text is no JSON; or it is too long (OverflowError, with nothing read beyond the limit).
        """
        seen: set[str] = set()
        for _ in self._listed("{", "}"):
            name = self.value()
            if not isinstance(name, str) or name in seen:
                self._refuse("a key is written twice" if isinstance(name, str) else "a key is no text")
            seen.add(name)
            self._take(":")
            yield name
        if not self.is_next(""):
            self._refuse("text behind the end")

    def elements(self) -> Iterator[Any]:
        """Yield the elements of a list, each as `value`."""
        for _ in self._listed("[", "]"):
            yield self.value()

    def value(self) -> Any:  # noqa: ANN401 (a JSON value)
        """Return the value that comes next."""
        self.is_next("")
        while True:
            problem = None
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                problem, end = error.msg, len(self._text)
            if end == len(self._text) and self._read_on():
                continue  # it may go on
            if problem is not None:
                self._refuse(problem)
            self._at = end
            return value

    def _listed(self, start: str, end: str) -> Iterator[None]:
        self._take(start)
        if not self.is_next(end):
            yield
            while self.is_next(","):
                self._take(",")
                yield
        self._take(end)

    def _take(self, character: str) -> None:
        if not self.is_next(character):
            self._refuse(f"Expecting '{character}'")
        self._at += 1

    def _read_on(self) -> bool:
        """Read twice as much as there is, so that a long value is not begun too often; False at the end."""
        rest = self._text[self._at :]
        read = self._file.read(max(CHARACTERS_READ_AT_ONCE, len(rest)))
        self._num_read += len(read)
        if self._num_read > self._max_characters:
            raise OverflowError(f"more than {self._max_characters:,} characters")
        self._text, self._at = rest + read, 0
        return bool(read)

    def _refuse(self, problem: str) -> NoReturn:
        raise ValueError(f"{problem} (character {self._num_read - len(self._text) + self._at + 1:,})")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key is written twice")
    return made


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)


FORMAT_VERSION = 1

LISTS = ("partition_values", "tags")
"""Of a file: empty ones are left out. Empty ``stored_values`` say something else than none."""

MAX_PLAN_CHARACTERS = 512 * 1024 * 1024
"""A longer text is refused unread; a million files are about half of it."""


FILES_AT_ONCE = 1000
"""So many files are one piece of text."""

INDENT = 2
"""Spaces before what is inside of something, where people read a document."""

CHARACTERS_AT_ONCE = 1 << 15
"""So much text is written to a file at once."""


def to_json(plan: Plan) -> str:
    """Write a plan as JSON text, indented, each file on a line; the digest is that of the text on one line."""
    return "".join(json_pieces(plan))


def json_pieces(plan: Plan) -> Iterator[str]:
    """Yield the same text in pieces: that of thousands of tables, or of a million files, is many times their plans."""
    return _pieces({**_head(plan), "tables": _tables(plan) if plan.tables else []}, _spell, INDENT, "\n")


def plan_bytes(plan: Plan) -> Iterator[bytes]:
    """Yield what is written into a file: the indented text in UTF-8, in pieces."""
    lines: list[str] = []
    length = 0
    for piece in json_pieces(plan):
        lines.append(piece)
        length += len(piece)
        if length >= CHARACTERS_AT_ONCE:
            yield "".join(lines).encode("utf-8", "surrogatepass")
            lines.clear()
            length = 0
    yield ("".join(lines) + "\n").encode("utf-8", "surrogatepass")


def _head(plan: Plan) -> dict[str, Any]:
    """The document without its tables, with the digest of all of it."""
    head: dict[str, Any] = {"format_version": FORMAT_VERSION, **encode(replace(plan, tables=()))}
    del head["tables"]
    return {**head, "digest": _digest(_canonical(head, map(_table_pieces, _tables(plan))))}


def _digest(pieces: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece.encode("utf-8", "surrogatepass"))
    return f"sha256:{digest.hexdigest()}"


def _canonical(head: dict[str, Any], tables: Iterable[Iterable[str]]) -> Iterator[str]:
    # The name of the tables is the last in order, so they are added to the rest.
    yield f'{canonical_json(head)[:-1]},"tables":['
    for number, pieces in enumerate(tables):
        yield "," * bool(number)
        yield from pieces
    yield "]}"


def _table_pieces(table: dict[str, Any]) -> Iterable[str]:
    if any(isinstance(step.get("files"), Iterator) for step in table["steps"]):
        return _pieces(table, canonical_json, None)
    return (canonical_json(table),)


def _tables(plan: Plan) -> Iterator[dict[str, Any]]:
    """Files of rewrites, of which a plan may have a million, are written without what they do not have.

    Those of a vacuum are not made before they are written.
    """
    for table in plan.tables:
        steps = (replace(step, files=()) if isinstance(step, VacuumStep) else step for step in table.steps)
        written = encode(replace(table, steps=tuple(steps)))
        written["state"] = table.state
        for step, written_step in zip(table.steps, written["steps"], strict=True):
            written_step["totals"] = totals(step)
            if isinstance(step, VacuumStep) and step.files:
                written_step["files"] = map(encode, step.files)
            for batch in written_step.get("batches", ()):
                for written_bin in batch["bins"]:
                    written_bin["files"] = [
                        {key: value for key, value in file.items() if value is not None and (value or key not in LISTS)}
                        for file in written_bin["files"]
                    ]
        yield written


_spell = json.JSONEncoder(sort_keys=True, ensure_ascii=False, allow_nan=False).encode


def _pieces(value: object, spell: Callable[[object], str], indent: int | None, margin: str = "") -> Iterator[str]:
    """Yield a value as text: indented, each file on a line, or without an indent in the canonical way."""
    inner, colon = ("", ":") if indent is None else (margin + " " * indent, ": ")
    match value:
        case dict() if value:
            for number, key in enumerate(sorted(value)):
                yield f"{',' if number else '{'}{inner}{spell(key)}{colon}"
                if key == "files" and isinstance(value[key], list | Iterator) and value[key]:
                    yield from _lines(value[key], spell, inner + " " * (indent or 0))
                    yield f"{inner}]"
                else:
                    yield from _pieces(value[key], spell, indent, inner)
            yield f"{margin}}}"
        case list() | Iterator() if value:
            for number, element in enumerate(value):
                yield f"{',' if number else '['}{inner}"
                yield from _pieces(element, spell, indent, inner)
            yield f"{margin}]"
        case _:
            yield spell(value)


def _lines(files: Iterable[object], spell: Callable[[object], str], margin: str) -> Iterator[str]:
    waiting, before = iter(files), "["
    while part := list(islice(waiting, FILES_AT_ONCE)):
        yield before + ",".join(margin + spell(file) for file in part)
        before = ","


def from_json(text: str | TextIO, *, where: str | None = None) -> Plan:
    """Read a plan that ``to_json`` wrote, table by table.

    Whether it is too old or the tables have moved on is not asked here, see ``planning.recheck.staleness``.

    Args:
        text: The document, or the file with it.
        where: The file it came from, for messages.

    Raises:
        Refused: A402, it is no plan, of another format, or was edited after it was made.
    """
    members = JsonMembers(io.StringIO(text) if isinstance(text, str) else text, MAX_PLAN_CHARACTERS)
    document: dict[str, Any] = {}
    try:
        if members.is_next("{"):
            computed, tables = _read_members(members, document)
        else:
            members.value()
    except OverflowError as error:
        raise _refused("the plan is too large to be read", where, str(error)) from error
    except UnicodeDecodeError:
        raise
    except (ValueError, RecursionError) as error:
        raise _refused("this is not a plan: it cannot be read as JSON", where, str(error)[:200]) from error
    if "format_version" not in document:
        raise _refused("this is not a plan", where, None)
    if document["format_version"] != FORMAT_VERSION:
        raise _refused(
            "the plan was made by another version of maintainer",
            where,
            f"format {str(document['format_version'])[:50]}",
        )
    digest = document.pop("digest", None)
    if digest != computed:
        raise _refused("the plan was edited after it was made: its digest does not match", where, str(digest)[:100])
    del document["format_version"]
    wrong = next((table for table in tables if isinstance(table, DecodeError)), None)
    try:
        if wrong is not None:
            raise wrong
        return replace(decode(Plan, {**document, "tables": []}), tables=tuple(tables))
    except DecodeError as error:
        raise _refused("this is not a plan", where, str(error)[:500]) from error


def _read_members(members: JsonMembers, document: dict[str, Any]) -> tuple[str, list[Any]]:
    """Put the members but for the tables into ``document``; return its digest, and the tables or what is wrong there.

    No plan has anything but its digest behind the tables: what has, has no digest.
    """
    digest, tables = "", list[TablePlan | DecodeError]()
    for name in members.names():
        if name == "tables":
            head = {key: value for key, value in document.items() if key != "digest"}
            digest = _digest(_canonical(head, _read_tables(members, tables)))
        else:
            document[name] = members.value()
            digest = digest if name == "digest" else ""
    return digest, tables


def _read_tables(members: JsonMembers, tables: list[TablePlan | DecodeError]) -> Iterator[tuple[str]]:
    """Yield the text of each table, and add what it says to ``tables``."""
    for number, table in enumerate(members.elements()):
        try:
            yield (canonical_json(table),)
            table.pop("state", None)
            for step in table.get("steps", ()):
                step.pop("totals", None)
            tables.append(decode(TablePlan, table))
        except DecodeError as error:
            tables.append(DecodeError(f"tables[{number}].{error.path}".rstrip("."), error.problem))
        except (AttributeError, TypeError):
            tables.append(DecodeError(f"tables[{number}]", "it is no plan of a table"))


def totals(step: Step) -> dict[str, int]:
    """Count what a step does; never read back."""
    match step:
        case BatchedStep():
            return {
                "num_batches": len(step.batches),
                "num_bins": len(step.bins),
                "num_files_removed": step.num_files,
                "num_files_added": step.num_files_added,
                "size_bytes": step.size_bytes,
            }
        case VacuumStep():
            return {"num_files_deleted": len(step.files), "size_bytes": step.size_bytes}
        case SetPropertiesStep():
            return {"num_properties": len(step.after)}
        case _:
            assert_never(step)


def _refused(what: str, where: str | None, found: str | None) -> Refused:
    return Refused(
        what, code="A402", where=where, found=found, help="make the plan again: `maintainer plan --out FILE`"
    )
