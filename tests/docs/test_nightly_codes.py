"""The page on codes of a night knows each code, once for each case, and no other."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
CODES = re.findall(r"^### ([A-Z]\d{3}):", (DOCS / "codes.md").read_text(encoding="utf-8"), re.MULTILINE)
TWICE = {"T404", "T406", "T407"}
"""They end a night only where somebody asked for the table."""


def test_each_code_is_in_one_row() -> None:
    listed: Counter[str] = Counter()
    lines = (DOCS / "nightly-codes.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if re.match(r"\| [A-Z]\d{3}", line)]
    for row in rows:
        cell = row.split("|")[1]
        spans = re.findall(r"([A-Z]\d{3})(?: to ([A-Z]\d{3}))?", cell)
        assert spans, row
        for first, last in spans:
            within = [code for code in CODES if first <= code <= (last or first)]
            assert within, f"{first} is no code"
            assert within[0] == first, f"{first} is no code"
            assert not last or within[-1] == last, f"{last} is no code"
            listed.update(within)
    assert {code: listed[code] for code in CODES if listed[code] != (2 if code in TWICE else 1)} == {}
