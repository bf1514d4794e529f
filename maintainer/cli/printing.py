"""What commands print and write: JSON documents, tables with a heading, warnings."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from maintainer.errors import ProjectError
from maintainer.report.style import Role, Style
from maintainer.report.text_layout import columns, printable


def print_json(document: object) -> None:
    """Print one JSON document."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def print_table(heading: Sequence[str], rows: Sequence[Sequence[str]], style: Style) -> None:
    """Print rows in columns below a bold heading; nothing without rows."""
    if rows:
        head, *lines = columns([heading, *([printable(cell) for cell in row] for row in rows)])
        click.echo("\n".join([style.paint(head, Role.BOLD), *lines]))


def warn(text: str, code: str = "") -> None:
    """Print a warning on stderr. It does not change the exit code."""
    note(f"warning{f'[{code}]' if code else ''}: {printable(text)}")


def note(line: str) -> None:
    """Print a line on stderr, above the live lines of a run where there are any: not by click, which goes past them."""
    sys.stderr.write(line + "\n")


@contextmanager
def writing(path: Path, what: str) -> Iterator[None]:
    """Turn a failure to write a file that the user asked for into our error; ``what`` names the file's content.

    Raises:
        ProjectError: E640, it cannot be written there.
    """
    try:
        yield
    except OSError as error:
        raise ProjectError(
            f"{what} cannot be written: {error.strerror or error}",
            code="E640",
            where=str(path),
            help="name a file in a folder that exists and that you may write to",
        ) from error
