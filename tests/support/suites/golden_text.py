"""Texts that a person has read, compared exactly. ``make golden`` writes those that differ: read the diff."""

from __future__ import annotations

import os
from pathlib import Path

UPDATE = "MAINTAINER_UPDATE_GOLDEN"


def assert_golden(file: Path, text: str) -> None:
    """Compare a text with the whole of a file; in ``make golden`` write it there."""
    if os.environ.get(UPDATE):
        file.write_text(text, encoding="utf-8")
    expected = file.read_text(encoding="utf-8")
    assert text.splitlines() == expected.splitlines()
    assert text == expected
