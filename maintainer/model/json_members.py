"""Read a JSON object from a file member by member, so that a long one is never in memory as a whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NoReturn, TextIO

CHARACTERS_AT_ONCE = 1 << 16


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
        read = self._file.read(max(CHARACTERS_AT_ONCE, len(rest)))
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
