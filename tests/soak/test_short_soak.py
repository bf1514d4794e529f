"""A soak of a minute and a half: the same as `make soak` runs for an hour, with one or two kills."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.run_soak import main

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(900)]


def test_nothing_is_lost_in_a_short_soak(tmp_path: Path) -> None:
    result = tmp_path / "soak.md"
    code = main(["--minutes", "1.5", "--seed", "7", "--out", str(result), "--folder", str(tmp_path / "soaked")])
    text = result.read_text(encoding="utf-8")
    assert code == 0, text
    assert text.endswith("PASSED\n")
