"""Each promise names a test, and the test is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")


def test_each_promise_names_a_test_that_is_there() -> None:
    rows = re.findall(r"^\| (\d) \|.*\|(.*)\|$", PAGE, flags=re.MULTILINE)
    assert [number for number, _ in rows] == list("1234567")
    for number, shown_by in rows:
        names = re.findall(r"`(tests/[\w/]+\.py)`", shown_by)
        assert names, f"promise {number}"
        for name in names:
            assert (ROOT / name).is_file(), f"promise {number}: {name}"
