"""Exact comparison with a transcript that someone has read. Nothing here writes one."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "golden"


def assert_golden(name: str, text: str) -> None:
    expected = (FOLDER / name).read_text(encoding="utf-8")
    assert text.splitlines() == expected.splitlines()
    assert text == expected
