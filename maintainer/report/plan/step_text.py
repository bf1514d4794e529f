"""Steps and left-alone files in words: what is said of one step, or of alike steps of several tables together.

A kind of step that is not described here does not type-check. What is said of each reason beside its own sentence, and
the policy keys behind it, is in ``reason_words.yml``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from functools import cache
from importlib import resources
from typing import assert_never

import yaml

from maintainer.model.plan.layout_tags import RewriteRequest
from maintainer.model.plan.plan import HELD_BACK, LeftAlone, TablePlan
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import (
    BatchedStep,
    ClusterStep,
    CompactStep,
    OneFileABin,
    PartitionRewriteStep,
    RewriteStep,
    SetPropertiesStep,
    Step,
    VacuumStep,
    ZOrderStep,
)
from maintainer.model.table.storage_facts import AfterDeletion
from maintainer.model.table.store_requests import RunRequests
from maintainer.planning.curve.revision import PROPERTY_PREFIX
from maintainer.planning.selection.lane_choice import lanes_of
from maintainer.report.document.blocks import Statement, Text, literal
from maintainer.report.document.folding import merged
from maintainer.report.style import Symbol
from maintainer.report.text_layout import columns, partition, printable, when
from maintainer.units import by_cause, count_of, format_duration, format_size, named

MAX_VALUE = 120
"""Characters of a property's value that a line shows."""

INTERNAL = "the boundaries of the Z-order, which later runs go by"
"""What is said instead of the value of a property of ours."""

ONLY_APPLY_CAN_TELL = "only apply checks: both clocks, other tables' logs, whether each file is still the same"


def step_word(kind: str) -> str:
    """Return the word for a kind of step: its own name, but ``properties`` for ``set_properties``."""
    return "properties" if kind == "set_properties" else printable(kind)


def describe(steps: Sequence[Step], tz: tzinfo | None, *, verbose: bool = False) -> list[Statement]:
    """Say what a step does, to how much, and why; of steps that are ``alike`` with the sums.

    ``tz`` is for the time before which vacuum deletes; None leaves out every time. ``verbose`` names what a step takes.
    """
    first, below = steps[0], tuple(_bins_and_files(steps[0])) if verbose else ()
    match first:
        case SetPropertiesStep():
            return _describe_properties(first, [step.reasons for step in steps])
        case VacuumStep():
            vacuums = [step for step in steps if isinstance(step, VacuumStep)]
            symbol, facts = Symbol.DELETE, _vacuum_facts(vacuums, tz)
        case BatchedStep():
            rewrites = [step for step in steps if isinstance(step, BatchedStep)]
            symbol, facts = Symbol.WRITE, [_rewrite_line(first, rewrites)]
        case _:
            assert_never(first)
    reasons = said_reasons([step.reasons for step in steps], with_times=tz is not None)
    if len(steps) > 1:  # the facts are sums
        reasons = tuple((f"each: {text}", place) for text, place in reasons)
    return [Statement(symbol, step_word(first.kind), tuple(facts), reasons, below=below)]


def price_of(requests: RunRequests) -> str:
    """Print ``; 0.00014 EUR``, two figures of what is less than one; empty where nothing has a price."""
    if requests.cost is None:
        return ""
    amount = f"{float(f'{requests.cost:.2g}'):.10f}".rstrip("0").rstrip(".")
    return f"; {f'{requests.cost:,.2f}' if requests.cost >= 1 else amount} {requests.currency}".rstrip()


def alike(step: Step) -> Hashable:
    """Return what steps of several tables must share to be described together."""
    match step:
        case SetPropertiesStep():
            return tuple((key, "" if is_internal(key) else (dict(step.before).get(key), to)) for key, to in step.after)
        case VacuumStep():
            return (step.retention_seconds, step.decided_by, step.trash_seconds, step.after)
        case BatchedStep():
            return (step.kind, _how(step), step.codec, len(step.batches) > 1)
        case _:
            assert_never(step)


def said_reasons(reasons: Sequence[Sequence[Reason]], *, with_times: bool = True) -> tuple[tuple[str, str], ...]:
    """Return each reason as a sentence and its policy line; those of several tables that go together are one."""
    return tuple(
        (_sentence(each, with_times=with_times), places(reason.origin for reason in each))
        for each in zip(*reasons, strict=False)
    )


def _sentence(alike: Sequence[Reason], *, with_times: bool) -> str:
    """Say a reason, or several that go together, as one; without times where none may stand."""
    return (not with_times and reason_words()[alike[0].code].timeless) or merged([reason.text for reason in alike])


def places(origins: Iterable[str | None]) -> str:
    """Name a policy line, or the first of several."""
    return named(list(dict.fromkeys(origin for origin in origins if origin)), 1)


def _rewrite_line(first: RewriteStep, steps: Sequence[RewriteStep]) -> str:
    sizes = f"{count_of(sum(step.num_files for step in steps), 'file')}, "
    sizes += f"{format_size(sum(step.size_bytes for step in steps))} -> about "
    facts = f"{sizes}{count_of(sum(step.num_files_added for step in steps), 'file')}{_how(first)}"
    turns = [step.planned_turn for step in steps if isinstance(step, ZOrderStep) and step.planned_turn is not None]
    if turns:
        pairs = [(turn.before, turn.after) for turn in turns]
        if known := [(before.files_read, after.files_read) for before, after in pairs if before and after]:
            sums = map(sum, zip(*known, strict=True))
            read, to_read = (f"{each:,.1f}".removesuffix(".0") for each in sums)
            facts += f", files read per query {read} -> about {to_read}"
        facts += ", more commits follow if needed" if isinstance(first, ZOrderStep) and first.settings else ""
    elif (num_commits := sum(len(step.batches) for step in steps)) > len(steps):
        facts += f", in {count_of(num_commits, 'commit')}"
    return f"{facts}{f', {first.codec}' if first.codec else ''}{_lanes(steps)}"


def _lanes(steps: Sequence[RewriteStep]) -> str:
    """Name the lanes of steps: ``, lane local``, or with the bins of each where there are several."""
    bins: Counter[str] = Counter()
    for step in steps:
        for choice, number in lanes_of(step.bins):
            bins[choice.lane.value] += number
    if len(bins) == 1:
        return f", lane {next(iter(bins))}"
    return f", lanes {', '.join(f'{lane} {number:,}' for lane, number in bins.items())}" if bins else ""


def _how(step: RewriteStep) -> str:
    columns = ", ".join(step.order_columns)
    match step:
        case PartitionRewriteStep():
            return f", {_request(step.request)}"
        case ClusterStep():
            full = ", also what other columns clustered" if step.full else ""
            return f" of about {format_size(step.max_file_size_bytes)}, clustered by {columns}{full}"
        case ZOrderStep(planned_turn=None):
            return f" of about {format_size(step.max_file_size_bytes)}, by {columns}"
        case OneFileABin():
            shuffled = ", with a shuffle" if isinstance(step, CompactStep) and step.repartition else ""
            return f" of up to {format_size(step.max_file_size_bytes)}{shuffled}"
    return f", by {columns}" if columns else ""


def _request(request: RewriteRequest) -> str:
    """Print a request: ``4 a partition, sorted by id``, or ``of about 128 MiB each``."""
    size = request.file_size_bytes
    text = f"{request.num_files or 0:,} a partition" if size is None else f"of about {format_size(size)} each"
    return text + (f", sorted by {', '.join(request.sort_columns)}" if request.sort_columns else "")


_KINDS = {
    "data": "data",
    "deletion_vector": "deletion vectors",
    "change_data": "change data",
    "untracked": "not in the log",
}


_AFTER = {
    AfterDeletion.FINAL: "final: the bucket keeps no versions",
    AfterDeletion.VERSIONED: "the bucket keeps older versions, from which `maintainer undelete` brings files back",
    AfterDeletion.UNKNOWN: "final unless the store keeps older versions, which is not known",
}


def _vacuum_facts(steps: Sequence[VacuumStep], tz: tzinfo | None) -> list[Text]:
    """Say how much is deleted, how old it is and what decided; then what is moved, emptied and listed."""
    first = steps[0]
    doing = "" if not first.trash_seconds else f" to the trash for {format_duration(first.trash_seconds)}"
    before = "" if tz is None else f", removed before {when(max(step.removed_before_ms for step in steps), tz)}"
    facts: list[Text] = [
        f"{count_of(sum(len(step.files) for step in steps), 'file')}, "
        f"{format_size(sum(step.size_bytes for step in steps))}{doing}{before}; keeps "
        f"{format_duration(first.retention_seconds)} (decided by {first.decided_by})"
    ]
    if first.after is not None:
        facts.append(_AFTER[first.after])
    numbers, sizes = Counter[str](), Counter[str]()
    for kind, number, size in (each for step in steps for each in step.by_kind):
        numbers[kind] += number
        sizes[kind] += size
    if numbers.keys() - {"data"}:
        facts.append(", ".join(f"{_KINDS.get(k, k)} {num:,} ({format_size(sizes[k])})" for k, num in numbers.items()))
    removed = [at_ms for step in steps for at_ms in (step.oldest_ms, step.youngest_ms) if at_ms is not None]
    if tz is not None and removed:
        oldest, youngest = when(min(removed), tz), when(max(removed), tz)
        facts.append(f"removed {oldest}" if oldest == youngest else f"removed from {oldest} to {youngest}")
    if emptied := [run for step in steps for run in step.emptied]:
        num, size = sum(run.num_files for run in emptied), sum(run.size_bytes for run in emptied)
        facts.append(f"from the trash {count_of(num, 'file')}, {format_size(size)}")
    if listings := [step.listing for step in steps if step.listing is not None]:
        files = count_of(sum(each.num_files for each in listings), "file")
        folders = count_of(sum(each.num_folders for each in listings), "folder")
        requests = count_of(sum(each.num_requests for each in listings), "request")
        facts.append(f"listed {files} in {folders}, about {requests}")
    return facts


def _describe_properties(step: SetPropertiesStep, reasons: Sequence[Sequence[Reason]]) -> list[Statement]:
    """Return a statement for each property, with the reason that names it; the last has what is left of the reasons."""
    rest, word = list(zip(*reasons, strict=False)), step_word(step.kind)
    statements = []
    for number, (key, value) in enumerate(step.after, start=1):
        is_last = number == len(step.after)
        own = [each for each in rest if is_last or key in each[0].text]
        rest = [each for each in rest if each not in own]
        said = said_reasons(list(zip(*own, strict=True)))
        change = INTERNAL if is_internal(key) else _change(key, dict(step.before).get(key), value)
        said = tuple((text.removeprefix(f"{key}: "), place) for text, place in said)
        statements.append(Statement(Symbol.CHANGE, word, (change,), said, goes_on=number > 1))
    return statements


def _change(key: str, before: str | None, value: str) -> Text:
    old = "(not set)" if before is None else literal(shortened(before))
    return (literal(key), "  ", old, " -> ", literal(shortened(value)))


def _bins_and_files(step: Step) -> Iterable[str]:
    """Yield a line for each bin or deleted file: exactly what the step takes."""
    match step:
        case SetPropertiesStep():
            return
        case BatchedStep():
            rows = [
                (
                    f"commit {number}/{len(step.batches)}",
                    count_of(len(bin_.files), "file"),
                    format_size(bin_.size_bytes),
                    partition(bin_.partition_texts),
                )
                for number, batch in enumerate(step.batches, start=1)
                for bin_ in batch.bins
            ]
        case VacuumStep():
            rows = [("delete", file.kind, format_size(file.size_bytes), printable(file.path)) for file in step.files]
        case _:
            assert_never(step)
    yield from columns(rows, right=frozenset({1, 2}))
    if isinstance(step, VacuumStep) and step.files:
        yield ONLY_APPLY_CAN_TELL


def is_internal(property_name: str) -> bool:
    """Whether a table property is ours: what Z-order must know in the next run. Its value is for no reader."""
    return property_name.startswith(PROPERTY_PREFIX)


def shortened(text: str) -> str:
    """Return text that is cut where it is long; the plan's JSON has all of it."""
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}... ({len(text):,} characters)"


def left_alone(
    *tables: Sequence[LeftAlone], verbose: bool = False, with_times: bool = True, is_aside: bool = False
) -> list[Statement]:
    """Say what is left alone of one table, or of several together, and why.

    It is added up by reason code, what holds it back first; ``verbose`` says each entry by itself.
    """
    entries = [(number, entry) for number, each in enumerate(tables) for entry in each]
    if verbose:
        return [_left_alone([each], with_times, is_aside) for each in entries]
    groups = by_cause(entries, lambda each: each[1].reason.code)
    groups.sort(key=lambda group: group[0][1].reason.code not in HELD_BACK)
    return [_left_alone(members, with_times, is_aside) for members in groups]


def _left_alone(members: Sequence[tuple[int, LeftAlone]], with_times: bool, is_aside: bool) -> Statement:
    entries = [entry for _, entry in members]
    code, only = entries[0].reason.code, entries[0].partition_values if len(entries) == 1 else None
    partitions = {(number, entry.partition_values) for number, entry in members if entry.partition_values and not only}
    num_files, size_bytes = sum(entry.num_files for entry in entries), sum(entry.size_bytes for entry in entries)
    amount = how_much(num_files, size_bytes, len(partitions))
    amount = f"{partition(only)}  {amount}".rstrip() if only else amount
    text = _sentence([entry.reason for entry in entries], with_times=with_times)
    reason = (with_code(code, text), places(entry.reason.origin for entry in entries))
    return Statement(Symbol.LEFT, "left alone", (amount,) if amount else (), (reason,), is_aside=is_aside)


def how_much(num_files: int, size_bytes: int, num_partitions: int = 0) -> str:
    """Print a quantity of files: ``8,426 files, 1.1 TiB in 12 partitions``; empty for none."""
    where = f"in {count_of(num_partitions, 'partition')}" if num_partitions else ""
    return f"{count_of(num_files, 'file')}, {format_size(size_bytes)} {where}".rstrip() if num_files else where


def with_code(code: ReasonCode, text: str) -> str:
    """Put a reason's code, by which the docs are searched, before its sentence, unless it begins with it anyway."""
    return text if text.startswith(code.value.replace("_", " ")) else f"{code.value}: {text}"


def is_named(table: TablePlan) -> bool:
    """Return whether a plan that is not verbose names a table: it changes, or someone may have to look at it."""
    loud = any(reason_words()[entry.reason.code].is_loud for entry in table.left_alone)
    return loud or table.maintained_twice is not None or table.state not in ("up_to_date", "waiting")


@dataclass(frozen=True, slots=True)
class ReasonWords:
    """What the file says of one reason; its head explains each field."""

    words: str = ""
    change: str = ""
    keys: tuple[str, ...] = ()
    timeless: str = ""
    is_loud: bool = False


@cache
def reason_words() -> Mapping[ReasonCode, ReasonWords]:
    """Return what is said of every reason; a test holds the set complete."""
    text = (resources.files(__package__) / "reason_words.yml").read_text(encoding="utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the one in C where there is one
    entries = yaml.load(text, loader).items()
    return {ReasonCode(code): ReasonWords(**{**said, "keys": tuple(said.get("keys", ()))}) for code, said in entries}
