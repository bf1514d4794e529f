"""A real run tells a real HTTP server that it failed; the address is nowhere to be read afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.http_receiver import http_receiver
from tests.support.product import run as command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECRET = "planted-in-the-path"

pytestmark = [pytest.mark.spark, pytest.mark.nightly]


@pytest.mark.parametrize("answer", [200, 410])
def test_a_failed_run_is_told(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, answer: int
) -> None:
    (tmp_path / "maintainer.yml").write_text('version: 1\nnotify: {url: "${env:HOOK}"}\n', encoding="utf-8")
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "gone.yml").write_text("version: 1\ntable: ./gone\nowner: team\n", encoding="utf-8")
    with http_receiver((answer,)) as receiver:
        monkeypatch.setenv("HOOK", f"{receiver.url}/{SECRET}")
        assert command(["--project", str(tmp_path), "apply", "--yes"]) == 1
    ((path, _, body),) = receiver.posts
    assert path == f"/{SECRET}"
    message = json.loads(body)
    assert (message["event"], message["exit_code"], message["num_tables"]) == ("failure", 1, 1)
    (table,) = message["tables"]
    assert (table["table"], table["owner"], table["status"]) == ("./gone", "team", "failed")
    printed = capfd.readouterr()
    assert ("warning[E657]: notifications were not all delivered: HTTP 410" in printed.err) == (answer == 410)
    contents = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert not any(SECRET.encode() in content for content in [*contents, printed.out.encode(), printed.err.encode()])
