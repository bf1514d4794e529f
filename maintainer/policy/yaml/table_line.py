"""Read the name of a file's table from its first lines, without reading the YAML.

Whoever asks for one table of thousands need not read the files of all others. A name is returned only where YAML can
mean nothing else: everything above it is a comment, or a key with a short value on its line. Any other file has to be
read.
"""

from __future__ import annotations

import re

_WORD = r"[A-Za-z0-9_][A-Za-z0-9_.@-]*"
_END = r"(?:[ ]+#[^\n\r]*|[ ]*)\r?\n"
_COMMENT = r"[ ]*(?:#[^\n\r]*)?\r?\n"
_SHORT_KEY = rf"(?!table:)[A-Za-z]+:[ ]+(?:{_WORD}|\[[ ]*{_WORD}(?:,[ ]*{_WORD})*[ ]*\]){_END}"
_PLAIN_NAME = r"[A-Za-z_./][A-Za-z0-9_./-]*(?::/[A-Za-z0-9_./@-]*)?"
_FIRST_LINES = re.compile(
    rf"\ufeff?(?:{_COMMENT}|{_SHORT_KEY})*"
    rf"table:[ ]+(?:\"(?P<double>[^\"\\\n\r]+)\"|'(?P<single>[^'\n\r]+)'|(?P<plain>{_PLAIN_NAME})){_END}"
    # What follows is another key: an indented line would go on with the name.
    r"(?:[A-Za-z#\r\n]|\Z)"
)


def table_in_first_lines(content: bytes) -> str | None:
    r"""Return the table that a file certainly names; None where only reading the YAML can tell.

    >>> table_in_first_lines(b"version: 1\ntable: sales.orders  # the shop\n")
    'sales.orders'
    >>> table_in_first_lines(b"{version: 1, table: sales.orders}\n") is None
    True
    """
    line = _FIRST_LINES.match(content.decode("utf-8", errors="replace"))
    return None if line is None else line["double"] or line["single"] or line["plain"]
