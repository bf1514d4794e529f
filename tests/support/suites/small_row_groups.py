"""A fixture: small test files are copied by row groups, which is otherwise done from a size on."""

from __future__ import annotations

import pytest

from maintainer.delta.rewrite import copy_lane


@pytest.fixture
def small_row_groups_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files of any size into the copy lane."""
    monkeypatch.setattr(copy_lane, "MIN_ROW_GROUP_BYTES", 1)
