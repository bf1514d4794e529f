"""Shared by the threats."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from maintainer.delta.storage.local_files import LocalFiles
from maintainer.delta.vacuum import untracked_files
from tests.support.tables.bind_mounts import BindMount, bind_mounts


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """The folder of all tables of a test."""
    folder = tmp_path / "lake"
    folder.mkdir()
    return folder


@pytest.fixture
def bind() -> Iterator[BindMount]:
    """Mounts a folder or file at a second path; see ``bind_mounts``."""
    with bind_mounts() as mount:
        yield mount


@pytest.fixture(params=["on a disk", "by requests", "by requests, too many to keep"])
def asks_by_request(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same files on a disk, and where each look is a request but folders may be links, as on HDFS."""
    monkeypatch.setattr(LocalFiles, "asks_by_request", request.param != "on a disk")
    if request.param == "by requests, too many to keep":
        monkeypatch.setattr(untracked_files, "MOST_LISTED", 0)
