"""What `stores.py` measured, as rows and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.store_arms import Measured
from tests.support.stores.counting_relay import KINDS

OURS = "maintainer"


@dataclass(frozen=True, slots=True)
class Row:
    """One process of one scene: who did what to how many tables, and what it took.

    ``more`` holds figures that only this scene has.
    """

    scene: str
    delay_ms: float
    arm: str
    what: str
    tables: int
    seconds: float
    cpu_seconds: float
    peak_mib: int
    has_jvm: bool
    requests: dict[str, int]
    more: dict[str, float] = field(default_factory=dict)


def row(scene: str, delay_ms: float, arm: str, what: str, tables: int, done: Measured, **more: float) -> Row:
    """Write down what a process took."""
    peak, requests = round(done.peak_bytes / 2**20), dict(sorted(done.counted.items()))
    seconds, cpu = round(done.seconds, 2), round(done.cpu_seconds, 2)
    return Row(scene, delay_ms, arm, what, tables, seconds, cpu, peak, done.has_jvm, requests, more)


def render_applied(rows: Sequence[Row]) -> list[str]:
    """Return the table of ``tables`` or ``night``: each ratio is against the faster of the two runs of delta-rs."""
    lines = [
        "| delay | | tables | at once | seconds | times delta-rs | CPU | peak memory | requests a table | files |",
        "|" + "---|" * 10,
    ]
    for one in rows:
        best = min(other.seconds for other in rows if _same(one, other) and other.arm != OURS)
        files = f"{one.more['files_before']:,.0f} -> {one.more['files_after']:,.0f}"
        lines.append(
            f"| {one.delay_ms:g} ms | {one.arm} | {one.tables} | {one.more['at_once']:.0f} | {one.seconds:.1f} s "
            f"| {one.seconds / best:.2f}x | {one.cpu_seconds:.1f} s | {one.peak_mib:,} MiB "
            f"| {sum(one.requests.values()) / one.tables:.1f} | {files} |"
        )
    further = [line for one in rows if (line := further_table(one, rows))]
    return (
        lines
        if not further
        else [*lines, "", "| delay | | a further table | times delta-rs |", "|---|---|---|---|", *further]
    )


def further_table(one: Row, rows: Sequence[Row]) -> str:
    """Return a line of what a further table takes: twice as many tables less as many, over as many."""

    def seconds(arm: Row) -> float | None:
        twice = [
            other
            for other in rows
            if (other.delay_ms, other.arm, other.tables) == (arm.delay_ms, arm.arm, 2 * arm.tables)
        ]
        return (twice[0].seconds - arm.seconds) / arm.tables if twice else None

    own = seconds(one)
    theirs = [
        took for other in rows if _same(one, other) and other.arm != OURS and (took := seconds(other)) is not None
    ]
    if own is None:
        return ""
    ratio = f"{own / min(theirs):.2f}x" if min(theirs) > 0 else "-"
    return f"| {one.delay_ms:g} ms | {one.arm} | {own:.3f} s | {ratio} |"


def _same(one: Row, other: Row) -> bool:
    return (one.scene, one.delay_ms, one.tables) == (other.scene, other.delay_ms, other.tables)


def render_looks(rows: Sequence[Row]) -> list[str]:
    """Return the table of ``looks``; of "looked at twice" the requests are those of the second look."""
    lines = ["| delay | | over | seconds | a table | CPU | JVM | peak memory | requests a table |", "|" + "---|" * 9]
    return lines + [
        f"| {one.delay_ms:g} ms | {one.arm} | {one.tables:,} {one.what} | {one.seconds:.1f} s "
        f"| {one.seconds / one.tables * 1000:.1f} ms | {one.cpu_seconds:.1f} s | {'yes' if one.has_jvm else 'no'} "
        f"| {one.peak_mib:,} MiB | {sum(one.requests.values()) / one.tables:.1f} |"
        for one in rows
    ]


def render_requests(rows: Sequence[Row]) -> list[str]:
    """Return the table of ``requests``, with what each of more tables cost beside the first."""
    lines = [
        f"| | | tables | {' | '.join(KINDS)} | all | reads of one commit file, at most |",
        "|" + "---|" * (len(KINDS) + 5),
    ]
    for one in rows:
        counts = " | ".join(f"{one.requests.get(kind, 0):,}" for kind in KINDS)
        what = one.what if "deleted" not in one.more else f"{one.what}, {one.more['deleted']:.0f} files deleted"
        lines.append(
            f"| {one.arm} | {what} | {one.tables} | {counts} | {sum(one.requests.values()):,} "
            f"| {one.more['commit_reads']:.0f} |"
        )
    lines.append("")
    for one in rows:
        first = [other for other in rows if (other.arm, other.what, other.tables) == (one.arm, one.what, 1)]
        if one.tables > 1:
            further = (sum(one.requests.values()) - sum(first[0].requests.values())) / (one.tables - 1)
            lines.append(f"* A further table costs {one.arm}'s {one.what} {further:.1f} requests.")
    return lines


def render_files(rows: Sequence[Row]) -> list[str]:
    """Return the table of ``files``."""
    lines = ["| delay | | | seconds | CPU | JVM | peak memory | requests | saved plan |", "|" + "---|" * 9]
    for one in rows:
        plan = f"{one.more['plan_bytes'] / 2**20:.1f} MiB" if "plan_bytes" in one.more else "-"
        lines.append(
            f"| {one.delay_ms:g} ms | {one.arm} | {one.what} | {one.seconds:.1f} s | {one.cpu_seconds:.1f} s "
            f"| {'yes' if one.has_jvm else 'no'} | {one.peak_mib:,} MiB | {sum(one.requests.values()):,} | {plan} |"
        )
    return lines


def render_memory(rows: Sequence[Row]) -> list[str]:
    """Return the table of ``memory``; each ratio is against the fewest tables."""
    lines = ["| delay | | tables | Python | times | JVM | times | seconds |", "|" + "---|" * 8]
    for one in rows:
        few = next(other for other in rows if (other.delay_ms, other.what) == (one.delay_ms, one.what))
        cells = [f"{one.delay_ms:g} ms", one.what, f"{one.tables:,}"]
        for program in ("python_bytes", "java_bytes"):
            own, first = one.more[program], few.more[program]
            cells += [f"{own / 2**20:,.1f} MiB", f"{own / first:.2f}"] if own and first else ["-", "-"]
        lines.append(f"| {' | '.join([*cells, f'{one.seconds:.1f} s'])} |")
    return lines
