"""What ``watch`` prints of a round that came to nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.cli.act.run_commands import WatchOutput
from maintainer.cli.context import CliContext
from maintainer.errors import Refused


def test_a_refusal_is_printed_in_full_and_a_bug_with_the_file_of_its_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    output = WatchOutput(CliContext(tmp_path))
    output.round_failed(Refused("too much", code="A421", found="2 TiB", allowed="1 TiB", help="select fewer"))
    said = capsys.readouterr().err
    assert said == "error[A421]: too much\n   = found: 2 TiB\n   = allowed: 1 TiB\n   = help: select fewer\n"
    output.round_failed(KeyError("path"))
    (file,) = (tmp_path / ".maintainer").glob("crash-*.txt")
    assert f"error[E699]: a bug in maintainer: KeyError: 'path'\n  --> {file}\n" in capsys.readouterr().err
