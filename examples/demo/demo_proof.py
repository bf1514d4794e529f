"""The demo's own proof that no row was lost or changed, by plain Spark SQL.

It shares nothing with the proofs of ``apply``: each row is written out as JSON, hashed with MD5, and the
hashes are summed, which does not depend on the order of rows or files. Small tables are also compared row by
row with the version before (``EXCEPT ALL``, both ways).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from examples.demo.demo_session import newest_version, quoted, read_table

if TYPE_CHECKING:
    from maintainer.delta.spark.spark_session import SparkSession as Session


@dataclass(frozen=True, slots=True)
class Content:
    """A table's rows at a version: their number, and two sums over 60 bits each of the rows' MD5."""

    version: int
    rows: int
    digest: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One table before and after."""

    table: str
    before: Content
    after: Content
    rows_that_differ: int | None

    @property
    def holds(self) -> bool:
        """Whether every figure is equal; a row-by-row comparison was only made for small tables."""
        same = self.before.rows == self.after.rows and self.before.digest == self.after.digest
        return same and self.rows_that_differ in (0, None)

    def describe(self) -> str:
        """Print one line for people."""
        versions = (
            f"version {self.before.version}, untouched"
            if self.before.version == self.after.version
            else f"version {self.before.version} -> {self.after.version}"
        )
        row_by_row = "" if self.rows_that_differ is None else f", {self.rows_that_differ} rows differ (EXCEPT ALL)"
        rows = (
            f"{self.after.rows:,} rows"
            if self.before.rows == self.after.rows
            else f"{self.before.rows:,} -> {self.after.rows:,} rows"
        )
        digest = "same content" if self.before.digest == self.after.digest else "OTHER CONTENT"
        return f"{'ok' if self.holds else 'FAILED':<6} {self.table:<9} {versions}: {rows}, {digest}{row_by_row}"


@dataclass(frozen=True, slots=True)
class Lookup:
    """What a query costs and answers: files and bytes left to read after data skipping, and its result."""

    condition: str
    files_read: int
    files_total: int
    bytes_read: int
    answer: tuple[str, ...]

    def describe(self) -> str:
        """Print one line for people."""
        return (
            f"WHERE {self.condition}: reads {self.files_read} of {self.files_total} files, "
            f"{self.bytes_read / 2**20:.2f} MiB; answer: {', '.join(self.answer)}"
        )


def read_content(spark: Session, table: Path) -> Content:
    """Read all rows of the newest version and sum them up."""
    version = newest_version(table)
    sums = ", ".join(
        f"CAST(sum(CAST(conv(substr(hash, {start}, 15), 16, 10) AS DECIMAL(38, 0))) AS STRING)" for start in (1, 17)
    )
    # Null fields are written out: without the option a null in one column could pass for a null in another.
    rows = f"SELECT md5(to_json(struct(*), map('ignoreNullFields', 'false'))) AS hash FROM {quoted(table)}"
    [row] = spark.sql(f"SELECT count(hash), {sums} FROM ({rows})").collect()
    return Content(version, int(row[0]), (str(row[1]), str(row[2])))


def compare(
    spark: Session, lake: Path, before: Mapping[str, Content], row_by_row: Sequence[str]
) -> tuple[Comparison, ...]:
    """Read every table again and compare it with what was read before.

    Args:
        spark: The session.
        lake: Folder of the tables.
        before: Content by table.
        row_by_row: Tables that are compared row by row as well, if they have a new version.
    """
    comparisons = []
    for name, content in before.items():
        table = lake / name
        after = read_content(spark, table)
        changed = after.version != content.version
        differing = rows_that_differ(spark, table, content.version) if changed and name in row_by_row else None
        comparisons.append(Comparison(name, content, after, differing))
    return tuple(comparisons)


def rows_that_differ(spark: Session, table: Path, version: int) -> int:
    """Count rows of the version that are not in the newest one, and the other way round; copies count."""
    old, new = f"SELECT * FROM {quoted(table)} VERSION AS OF {version}", f"SELECT * FROM {quoted(table)}"
    differences = f"({old} EXCEPT ALL {new}) UNION ALL ({new} EXCEPT ALL {old})"
    [row] = spark.sql(f"SELECT count(*) FROM ({differences})").collect()
    return int(row[0])


def look_up(spark: Session, table: Path, condition: str, measures: Sequence[str]) -> Lookup:
    """Run a query with a filter, and count the files that it reads.

    Args:
        spark: The session.
        table: Folder of the table.
        condition: SQL, the WHERE of the query.
        measures: SQL aggregates: its answer.
    """
    everything = read_table(spark, table)
    selected = everything.where(condition)
    files = selected.inputFiles()
    [row] = selected.selectExpr(*measures).collect()
    return Lookup(
        condition=condition,
        files_read=len(files),
        files_total=len(everything.inputFiles()),
        bytes_read=sum(Path(unquote(urlsplit(file).path)).stat().st_size for file in files),
        answer=tuple(str(value) for value in row),
    )
