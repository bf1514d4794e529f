"""The entry point for job runners: a good run returns, any other exits with its code."""

from __future__ import annotations

import pytest

from maintainer.cli.main import job


def test_a_good_run_returns(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["maintainer-job", "--version"])
    job()
    assert capsys.readouterr().out.startswith("maintainer")


def test_any_other_exits_with_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["maintainer-job", "plann"])
    with pytest.raises(SystemExit) as caught:
        job()
    assert caught.value.code == 2
