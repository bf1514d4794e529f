"""The page on looking back names what the program knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.model.run.history_rows import StatusRow
from maintainer.report.status_documents import STATES
from maintainer.report.status_text import render_status

PAGE = (Path(__file__).parents[2] / "docs" / "looking-back.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("state", STATES)
def test_every_state_is_explained(state: str) -> None:
    assert f"`{state}`" in PAGE


def test_the_columns_that_it_explains_are_there() -> None:
    heading = render_status([StatusRow("t", "ok")], 0).splitlines()[0].split()
    for column in ("STATE", "SMALL", "FILES", "SIZE", "OPTIMIZED", "VACUUMED", "PROOF", "NEXT"):
        assert column in heading
        assert f"`{column}`" in PAGE
