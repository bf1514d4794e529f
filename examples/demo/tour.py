"""The walk through everything: the real commands, one after the other, on the demo's lake.

Commands run through the command line's own entry, in this process and its one Spark session, so what is shown
is what anybody gets who types the same line. The tour measures for itself whether it kept its word: rows and
content before and after, the files that a query reads, and that a second ``apply`` commits nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from examples.demo.demo_lake import SMALL_TABLES, TABLES, DemoFolder, build
from examples.demo.demo_proof import Content, Lookup, compare, look_up, read_content
from examples.demo.demo_session import newest_version
from maintainer.errors import ExitCode

if TYPE_CHECKING:
    from maintainer.delta.spark.spark_session import SparkSession as Session

RunCommand = Callable[[list[str]], int]
"""Runs one command line (without the program's name) and returns its exit code; never raises."""

LOOKUP_TABLE = "lineitem"
LOOKUP_MEASURES = ("count(*)", "sum(l_quantity)", "sum(l_extendedprice)")


def lookups(scale: float) -> tuple[str, str]:
    """Return the conditions of two look-ups in the middle of their columns.

    TPC-H has 200,000 parts and order keys up to 6,000,000 at scale 1.
    """
    part, order = int(94_000 * scale), int(3_000_000 * scale)
    return (
        f"l_partkey BETWEEN {part} AND {part + max(1, int(400 * scale))}",
        f"l_orderkey BETWEEN {order} AND {order + max(1, int(10_000 * scale))}",
    )


@dataclass
class Screen:
    """Where the tour shows itself: stdout."""

    color: bool

    def heading(self, text: str) -> None:
        """Print the name of a stage so that it stands out, with and without colour."""
        self.say(f"\n{click.style(text, bold=True)} {'-' * max(8, 96 - len(text))}")

    def command(self, line: str) -> None:
        """Print a command line that runs next, as a person would type it."""
        self.say(click.style(f"$ {line}", fg="cyan"))

    def say(self, text: str) -> None:
        """Print a line."""
        click.echo(text, color=self.color)


class StageFailed(Exception):
    """A stage ended with another exit code than it should; the rest of the tour makes no sense."""

    def __init__(self, what: str, exit_code: int) -> None:
        super().__init__(what)
        self.exit_code = exit_code


@dataclass
class Tour:
    """One walk through the demo.

    Attributes:
        spark: The session that every stage uses.
        folder: The demo's folder; the process's working directory, so that the lines shown can be typed there.
        run: Runs a command line in this process.
        screen: Where to show it.
        scale: Scale of the TPC-H tables.
        fresh: Whether to build the lake; False walks through one that is there.
    """

    spark: Session
    folder: DemoFolder
    run: RunCommand
    screen: Screen
    scale: float
    fresh: bool = True
    _broken: list[str] = field(default_factory=list)

    def walk(self) -> int:
        """Walk through all stages and return the exit code of the whole.

        Returns:
            0, or the exit code of the first command that failed, or 5 when a measure of the tour's own shows
            that something did not hold.
        """
        started = time.monotonic()
        try:
            self._build()
            content = self._before()
            answers = self._queries()
            self._apply(content)
            self._queries_again(answers)
            self._look_back()
        except StageFailed as failure:
            self.screen.heading("The demo stopped")
            self.screen.say(str(failure))
            return failure.exit_code
        self._finish(time.monotonic() - started)
        return ExitCode.VERIFICATION_FAILED if self._broken else ExitCode.OK

    def _build(self) -> None:
        if self.fresh:
            self.screen.heading("1. A small lake of real data")
            build(self.spark, self.folder, self.scale, self.screen.say)
        else:
            self.screen.heading("1. The existing lake")
            self.screen.say(str(self.folder.lake))

    def _before(self) -> dict[str, Content]:
        self.screen.heading("2. Are the policies right?")
        self._command("validate")
        self.screen.heading("3. Which settings does one table have, and which line sets them?")
        self._command("explain", f"lake/{LOOKUP_TABLE}")
        self.screen.heading("4. What would be done, and why? (changes nothing)")
        versions = self._versions()
        self._command("plan", "--out", self.folder.plan.name)
        self._expect(versions == self._versions(), "`plan` changed no table")
        return {name: read_content(self.spark, self.folder.table(name)) for name in TABLES}

    def _queries(self) -> tuple[Lookup, ...]:
        self.screen.heading(f"5. Two look-ups in {LOOKUP_TABLE}, before")
        return self._look_up()

    def _apply(self, before: Mapping[str, Content]) -> None:
        self.screen.heading("6. Apply that plan: prove each rewrite, then commit it")
        self._command("apply", self.folder.plan.name, "-j", "2")
        self.screen.say("")
        self.screen.say(
            "The same rows as before? Compared by plain Spark SQL, which shares nothing with apply's own proof:"
        )
        for comparison in compare(self.spark, self.folder.lake, before, SMALL_TABLES):
            self.screen.say(f"  {comparison.describe()}")
            if not comparison.holds:
                self._broken.append(f"{comparison.table}: the rows are not the same as before")

        self.screen.heading("7. Apply again: nothing is left to do")
        versions = self._versions()
        self._command("apply", "--yes")
        self._expect(versions == self._versions(), "the second `apply` committed nothing")

    def _queries_again(self, before: Sequence[Lookup]) -> None:
        self.screen.heading("8. The same look-ups, after")
        for old, new in zip(before, self._look_up(), strict=True):
            self._expect(old.answer == new.answer, f"the same answer WHERE {new.condition}")
            fewer = new.files_read < old.files_read if self.fresh else new.files_read <= old.files_read
            self._expect(fewer, f"files read: {old.files_read} -> {new.files_read}")

    def _look_back(self) -> None:
        self.screen.heading("9. What was done, and the state now")
        self._command("history")
        self._command("status")

    def _finish(self, seconds: float) -> None:
        self.screen.heading(f"Done in {seconds:.0f} s")
        for broken in self._broken:
            self.screen.say(f"FAILED: {broken}")
        for place, what in places(self.folder):
            self.screen.say(f"{what:<14} {place}")
        self.screen.say("")
        self.screen.say("Try next:")
        self.screen.command(f"cd {self.folder.root}")
        self.screen.command("maintainer why lake/airports")
        self.screen.say("then change maxFileSize in policies/tpch/lineitem.yml and look at:")
        self.screen.command("maintainer plan")

    def _command(self, *args: str) -> None:
        self.screen.command("maintainer " + " ".join(args))
        started = time.monotonic()
        exit_code = self.run(list(args))
        self.screen.say(f"[exit code {exit_code} after {time.monotonic() - started:.1f} s]")
        if exit_code != ExitCode.OK:
            raise StageFailed(f"`maintainer {' '.join(args)}` ended with exit code {exit_code}, not 0", exit_code)

    def _look_up(self) -> tuple[Lookup, ...]:
        table = self.folder.table(LOOKUP_TABLE)
        lookups_made = tuple(
            look_up(self.spark, table, condition, LOOKUP_MEASURES) for condition in lookups(self.scale)
        )
        for lookup in lookups_made:
            self.screen.say(lookup.describe())
        return lookups_made

    def _versions(self) -> dict[str, int]:
        return {name: newest_version(self.folder.table(name)) for name in TABLES}

    def _expect(self, holds: bool, what: str) -> None:
        """Say whether something holds, and remember if it does not."""
        self.screen.say(f"{'ok' if holds else 'FAILED'}: {what}")
        if not holds:
            self._broken.append(what)


def places(folder: DemoFolder) -> list[tuple[Path, str]]:
    """Return where everything is that the tour left behind; only what exists."""
    state = folder.root / ".maintainer"
    runs = sorted((state / "runs").glob("*")) if (state / "runs").is_dir() else []
    candidates = [
        (folder.lake, "tables"),
        (folder.root / "policies", "policies"),
        (folder.plan, "plan"),
        *((run / "results.json", "results") for run in runs),
        *((run / "report.html", "report") for run in runs),
        (state / "ledger", "ledger"),
    ]
    return [(path, what) for path, what in candidates if path.exists()]
