"""Each point at which fault tests hold an apply is a function of today's code: a rename shows here, in a second.

The tests themselves are drawn, so a point that no longer exists would go unnoticed for days.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.faults import held_apply


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("point", sorted(set(held_apply.POINTS) - {"published"}))
def test_a_point_is_a_function(point: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    functions: list[Any] = []

    def note(owner: Any, name: str, *_: Any, **__: Any) -> None:
        functions.append(getattr(owner, name))

    monkeypatch.setattr(held_apply, "_around", note)
    held_apply.POINTS[point](lambda: None, seed)
    assert len(functions) == 1
    assert callable(functions[0])
