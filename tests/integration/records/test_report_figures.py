"""Figures of the reports on real tables: what `status` says, and what deltalake reads from the log."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import deltalake
import pytest

from tests.support.product import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

ROW = re.compile(r'<tr><th scope="row">(?:<a [^>]*>)?([^<]+)(.*?)</tr>', re.DOTALL)
FIGURE = re.compile(r'<td class="n" data-l="([^"]+)">([^<]+)</td>')


def append(spark: SparkSession, path: Path, num_files: int) -> None:
    spark.range(0, num_files * 10, 1, num_files).write.format("delta").mode("append").save(str(path))


def in_log(path: Path) -> tuple[int, int]:
    """Files and bytes of a table as another reader of the log has them."""
    sizes = deltalake.DeltaTable(str(path)).get_add_actions(flatten=True).column("size_bytes").to_pylist()
    return len(sizes), sum(sizes)


def said(num_bytes: int) -> str:
    """A size below a mebibyte as pages say it."""
    return f"{num_bytes} B" if num_bytes < 1024 else f"{num_bytes / 1024:.1f} KiB"


def rows_of(page: Path) -> dict[str, dict[str, str]]:
    """The figures in each table's row by the heads of their columns."""
    text = page.read_text(encoding="utf-8")
    section = text[text.index('<h2 id="tables">') :]
    matches = ROW.findall(section[: section.index("</table>")])
    return {name: dict(FIGURE.findall(row)) for name, row in matches}


def files_of(row: dict[str, str]) -> tuple[int, int]:
    return int(row["files before"]), int(row["after"])


def test_pages_say_of_each_table_what_its_log_says(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where a saved plan is applied after others appended, and a second time when nothing of it is left."""
    lake = {name: tmp_path / name for name in ("grown", "idle")}
    (tmp_path / "policies").mkdir()
    for name, path in lake.items():
        append(spark, path, 9 if name == "grown" else 1)
        (tmp_path / "policies" / f"{name}.yml").write_text(f"version: 1\ntable: ./{name}\n", encoding="utf-8")
    (tmp_path / "maintainer.yml").write_text("version: 1\nname: figures\n", encoding="utf-8")
    here, saved = ["--project", str(tmp_path)], str(tmp_path / "plan.json")

    def page(*options: str) -> dict[str, dict[str, str]]:
        capsys.readouterr()
        assert run([*here, "report", *options]) == 0
        return rows_of(Path(capsys.readouterr().out.strip()))

    assert run([*here, "plan", "--out", saved]) == 0
    append(spark, lake["grown"], 3)
    before, _ = in_log(lake["grown"])
    assert run([*here, "apply", saved]) == 0
    after, after_bytes = in_log(lake["grown"])
    assert (before, after) == (12, 4)
    assert files_of(page()["./grown"]) == (before, after)
    grown = page("--fleet")["./grown"]
    assert (grown["files"], grown["size"]) == (str(after), said(after_bytes))

    append(spark, lake["grown"], 2)
    assert run([*here, "apply", saved]) == 0
    now = in_log(lake["grown"])
    assert files_of(page()["./grown"]) == (now[0], now[0])
    capsys.readouterr()
    assert run([*here, "status", "-o", "json"]) == 0
    status = {row["table"]: row for row in json.loads(capsys.readouterr().out)["tables"]}
    fleet = page("--fleet")
    for name, path in lake.items():
        row, (files, size) = fleet[f"./{name}"], in_log(path)
        assert (row["files"], row["size"]) == (str(files), said(size))
        assert (status[f"./{name}"]["num_files"], status[f"./{name}"]["size_bytes"]) == (files, size)
        assert (row["grown"] != "none") == (name == "grown")
