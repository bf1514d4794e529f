"""Shared by the threats."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """The folder of all tables of a test."""
    folder = tmp_path / "lake"
    folder.mkdir()
    return folder
