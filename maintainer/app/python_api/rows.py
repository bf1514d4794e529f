"""What ``status``, ``why``, ``history`` and ``explain`` return: rows and text that a notebook shows by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar, overload

from maintainer.app.project_folders import local_zone
from maintainer.model.run.history_rows import HistoryRow, StatusRow
from maintainer.report.document.blocks import Table
from maintainer.report.document.markdown_writer import markdown_text
from maintainer.report.html.notebook import notebook_html, notebook_text
from maintainer.report.status_documents import row_values
from maintainer.report.status_text import (
    history_table,
    render_history,
    render_status,
    status_table,
)
from maintainer.units import count_of

RowT = TypeVar("RowT", StatusRow, HistoryRow)


class Rows(Sequence[RowT], Generic[RowT]):
    """Rows of `status` or `history`, in their order: a sequence that prints as the command line prints it.

    ``pandas.DataFrame(rows.to_dicts())`` makes a data frame of them. ``warnings`` limit what the rows say: a run or a
    table's log that could not be read.
    """

    def __init__(self, title: str, rows: Sequence[RowT], text: str, shown: Table, warnings: Sequence[str] = ()) -> None:
        self._title = title
        self._rows: tuple[RowT, ...] = tuple(rows)
        self._text = text
        self._shown = shown
        self.warnings = tuple(warnings)

    @staticmethod
    def of_status(rows: Sequence[StatusRow], at_ms: int, warnings: Sequence[str]) -> Rows[StatusRow]:
        """Return the states of tables as they were looked at (milliseconds since 1970 UTC)."""
        text = render_status(rows, at_ms, tz=local_zone())
        title = f"Status of {count_of(len(rows), 'table')}"
        return Rows(title, rows, text, status_table(rows, at_ms, tz=local_zone()), warnings)

    @staticmethod
    def of_history(rows: Sequence[HistoryRow], table: str | None, warnings: Sequence[str]) -> Rows[HistoryRow]:
        """Return steps of past runs, of one table or of all."""
        one_table = table is not None
        text = render_history(rows, tz=local_zone(), one_table=one_table)
        title = f"History{f' of {table}' if table else ''}: {count_of(len(rows), 'step')}"
        return Rows(title, rows, text, history_table(rows, tz=local_zone(), one_table=one_table), warnings)

    @overload
    def __getitem__(self, index: int) -> RowT: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[RowT]: ...

    def __getitem__(self, index: int | slice) -> RowT | Sequence[RowT]:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<{self._title}>"

    def _repr_html_(self) -> str:
        return notebook_html(self._title, self.warnings, self._shown)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return each row as a dict, with the keys of ``-o json``; times are UTC in ISO 8601."""
        return [row_values(row) for row in self._rows]

    def to_markdown(self) -> str:
        """Return the rows as a Markdown table, ending in a newline."""
        return markdown_text([self._shown]) if self._rows else self._text


class Text:
    """Text of a fixed width, such as every decision about a table: ``str()`` has it, a notebook shows it."""

    def __init__(self, title: str, text: str) -> None:
        self._title = title
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<{self._title}>"

    def _repr_html_(self) -> str:
        return notebook_text(self._text)
