"""The page that a soak writes."""

from __future__ import annotations

import platform
import subprocess
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from tests.soak.judgement.failure_causes import OTHERS, OURS, UNCLEAR
from tests.soak.judgement.soak_verdict import MAX_JVM_SLOPE_MIB, MAX_PYTHON_SLOPE_MIB, WARM_UP_SHARE, Verdict
from tests.soak.process_memory import MIB
from tests.soak.soak_settings import MAX_EXTRA_FAILURES

REPOSITORY = Path(__file__).resolve().parents[3]


def page(verdict: Verdict, command: str) -> str:
    """Return the result as Markdown; its last line is PASSED, or the list of what failed comes last."""
    settings = verdict.settings
    lines = [
        f"# Soak of {settings.seconds / 60:g} minutes",
        "",
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit {_commit()}, seed {settings.seed}, "
        f"{platform.system()} {platform.machine()}, Python {platform.python_version()}.",
        "",
        f"`{command}`",
        "",
        f"Vacuum keeps files for {settings.retention_seconds} s, `quietAfterUpdates` is {settings.quiet_seconds} s, "
        f"updates come for {settings.burst_seconds:.0f} s in {settings.burst_seconds + settings.calm_seconds:.0f} s.",
        "",
        *_writers(verdict),
        *_tables(verdict),
        *_readers(verdict),
        *_watch(verdict),
        *_memory(verdict),
        "## Result",
        "",
        f"The checker of truth took {verdict.checker_seconds:.1f} s.",
        "",
        *([f"FAILED: {len(verdict.failures)}", ""] if verdict.failures else ["PASSED"]),
        *(f"* {text}" for text in verdict.failures),
    ]
    return "\n".join(lines) + "\n"


def _commit() -> str:
    def said(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    return (said("rev-parse", "--short", "HEAD") or "unknown") + (" with changes" if said("status", "-s") else "")


def _writers(verdict: Verdict) -> Iterator[str]:
    yield "## Writers"
    yield ""
    yield "| writer | operations | landed | settled from the log | failed by maintainer | by another writer | neither |"
    yield "|---|---|---|---|---|---|---|"
    for name, writer in sorted(verdict.writers.items()):
        causes = " | ".join(str(writer.failures[cause]) for cause in (OURS, OTHERS, UNCLEAR))
        yield f"| {name} | {writer.operations} | {writer.landed} | {writer.unknown_settled} | {causes} |"
    share = verdict.failures_by_maintainer / max(verdict.operations, 1)
    yield ""
    yield (
        f"{verdict.failures_by_maintainer} of {verdict.operations} operations failed because of maintainer: "
        f"{share:.2%}; {MAX_EXTRA_FAILURES:.0%} is allowed."
    )
    yield ""
    for name, writer in sorted(verdict.writers.items()):
        for cause, example in writer.examples.items():
            yield f"* {name}, {cause}: `{' '.join(example.split()).replace('`', chr(39))[:400]}`"
    yield ""


def _tables(verdict: Verdict) -> Iterator[str]:
    yield "## Tables"
    yield ""
    yield (
        "| table | versions | rows | files by writers | by maintainer | live at the end | on disk | deleted | "
        "commits by maintainer |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, table in verdict.tables.items():
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(table.kinds.items()))
        yield (
            f"| {name} | {table.version + 1} | {table.rows} | {table.files_added_by_writers} | "
            f"{table.files_added_by_maintainer} | {table.live_files} | {table.files_on_disk} | {table.files_deleted} | "
            f"{kinds} |"
        )
    yield ""


def _readers(verdict: Verdict) -> Iterator[str]:
    read = ", ".join(f"{name} {number}" for name, number in verdict.readers.items())
    yield f"Rows or changes that readers saw: {read}. They were away and came back {verdict.reader_returns} times."
    yield ""


def _watch(verdict: Verdict) -> Iterator[str]:
    kinds = Counter(kill.kind for kill in verdict.life.kills)
    after = sum(kill.after_intent for kill in verdict.life.kills)
    yield "## The watch"
    yield ""
    ends = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    yield f"Started {verdict.life.starts} times; ended by {ends}; {after} of these right after an intent was written."
    yield ""
    yield "| at second | how | after an intent | exit code | Python ended after | JVM ended after |"
    yield "|---|---|---|---|---|---|"
    for kill in verdict.life.kills:
        java = "none" if kill.jvm_end_seconds is None else f"{kill.jvm_end_seconds:.1f} s"
        yield (
            f"| {kill.seconds:.0f} | {kill.kind} | {'yes' if kill.after_intent else 'no'} | {kill.exit_code} | "
            f"{kill.end_seconds:.1f} s | {java} |"
        )
    yield ""


def _memory(verdict: Verdict) -> Iterator[str]:
    memory, samples = verdict.memory, verdict.life.samples
    yield "## Memory and disk"
    yield ""
    if memory is None:
        yield "Too few samples."
    else:
        judged = "judged" if verdict.is_whole else "not judged, the run is too short"
        yield (
            f"Resident memory, sampled every 10 s. In the last life, after a warm-up of {WARM_UP_SHARE:.0%} of it: "
            f"{memory.samples} samples over {memory.minutes:.1f} minutes; Python grew by "
            f"{memory.python_slope_mib:+.2f} MiB a minute (at most {MAX_PYTHON_SLOPE_MIB:g}), the JVM by "
            f"{memory.jvm_slope_mib:+.2f} (at most {MAX_JVM_SLOPE_MIB:g}); {judged}. "
            f"Peaks: {memory.python_peak_mib:.0f} and {memory.jvm_peak_mib:.0f} MiB."
        )
    yield ""
    if samples:
        yield "| at second | process | Python MiB | JVM MiB | data files of the lake MiB | runs and ledger MiB |"
        yield "|---|---|---|---|---|---|"
        step = max(1, len(samples) // 24)
        for sample in samples[::step]:
            figures = (sample.python_bytes, sample.jvm_bytes, sample.lake_bytes, sample.project_bytes)
            sizes_text = " | ".join(f"{figure / MIB:.1f}" for figure in figures)
            yield f"| {sample.seconds:.0f} | {sample.process_id} | {sizes_text} |"
        yield ""
