"""A row whose table's name is text in no encoding is in the ledger, and is found there by that name."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from maintainer.delta.engine.ledger_append import _file_of
from maintainer.delta.engine.ledger_table import LedgerTable, _row_of, _values
from maintainer.journal.ledger.ledger_rows import LEDGER_COLUMNS, LedgerRow
from tests.support.runs.ledger_queries import ROW


@pytest.mark.parametrize("name", ["orders", "caf\u00e9", "caf\udce9", "c:\\users"])
def test_a_row_comes_back_as_it_was_whatever_its_folder_is_called(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row = replace(ROW, table=name, location=f"file:/lake/{name}", step_id=f"{name}/compact", error=None)
    file = _file_of(LEDGER_COLUMNS, [_values(row), _values(ROW)])
    written = pq.read_table(io.BytesIO(file)).to_pylist()
    assert written[0]["table"].encode() == name.encode("utf-8", "backslashreplace")
    assert [_row_of(dict(values)) for values in written] == [row, ROW]

    def asked(self: LedgerTable, question: Callable[[object], object]) -> list[tuple[str, ...]]:
        columns = ("step_id",) if "steps_of" in str(question) else ("run_id", "step_id")
        return [tuple(str(values[column]) for column in columns) for values in written]

    monkeypatch.setattr(LedgerTable, "_ask", asked)
    ledger, rows = LedgerTable(None, "l"), list[LedgerRow]([row, ROW])  # type: ignore[arg-type]  # nothing is asked
    assert ledger.steps_of(ROW.run_id) == {each.step_id for each in rows}
    assert ledger.contents().keys == {(each.run_id, each.step_id) for each in rows}
