"""A table whose rewrite was forged is in quarantine: reports say so, with what to do, until a person accepts it."""

from __future__ import annotations

import html
import re
from functools import partialmethod
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from tests.support.product import DeltaEngine, TableStorage, WrittenFile, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.nightly]

COMMAND = "maintainer verify ./forged --accept REASON"


def lose_a_row(storage: TableStorage, written: list[WrittenFile]) -> None:
    """Take the first row out of a file that was written and not proven yet."""
    path = Path(storage.uri(written[0].path).removeprefix("file:"))
    pq.write_table(pq.read_table(path).slice(1), path)
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    written[0].add["size"] = path.stat().st_size


def test_a_forged_rewrite_is_seen_on_both_pages_until_a_person_accepts_the_table(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spark.range(0, 40, 1, 4).write.format("delta").save(str(tmp_path / "forged"))
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "forged.yml").write_text("version: 1\ntable: ./forged\n", encoding="utf-8")
    (tmp_path / "maintainer.yml").write_text("version: 1\nname: figures\n", encoding="utf-8")

    def maintainer(*arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        code = run(["--project", str(tmp_path), *arguments])
        return int(code), capsys.readouterr().out

    def page(*options: str) -> str:
        code, shown = maintainer("report", *options)
        assert code == 0
        return html.unescape(Path(shown.strip()).read_text(encoding="utf-8"))

    def held(text: str) -> tuple[bool, bool, bool]:
        """Whether a page says what is wrong, what to do, and marks the table's line."""
        tables = text[text.index('<h2 id="tables">') :]
        return "in quarantine, no run changes it" in text, f"<code>{COMMAND}</code>" in text, "in quarantine" in tables

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DeltaEngine, "__init__", partialmethod(DeltaEngine.__init__, between_write_and_proof=lose_a_row))
        assert maintainer("apply", "--yes")[0] == 5
    for options in ((), ("--fleet",)):
        assert held(page(*options)) == (True, True, True), options
        assert "V501" in page(*options)
    assert "1 table is in quarantine" in page("--fleet")

    maintainer("apply", "--yes")  # the next night leaves it alone
    for options in ((), ("--fleet",)):
        text = page(*options)
        assert held(text) == (True, True, True), options
        assert len(re.findall(r'<div class="finding error">', text)) == 1, options

    assert maintainer("verify", "./forged", "--accept", "looked at it")[0] == 0
    for options in ((), ("--fleet",)):
        assert held(page(*options))[0] is False, options
    assert maintainer("apply", "--yes")[0] == 0
    assert "All tables ended well" in page("--fleet")
