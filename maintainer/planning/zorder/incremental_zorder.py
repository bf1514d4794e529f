"""Plan incremental Z-order: the first turn of the loop as a step, and what waits for later turns, with reasons.

The step carries the settings of the loop (``ZOrderSettings``), so ``next_turn`` plans later turns from fresh facts
without the policy. Everything is decided from tags, statistics and properties in the log.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from maintainer.errors import TableError
from maintainer.model.plan.plan import LeftAlone
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import SetPropertiesStep, ZOrderStep
from maintainer.model.plan.zorder_turn import Strategy, ZOrderSettings
from maintainer.model.table.table_facts import DataFile, FileKey, TableFacts
from maintainer.planning.curve.curve_files import CurveFile, unindexed_bytes
from maintainer.planning.curve.revision import Revision, revisions_in
from maintainer.planning.plan_input import TableInput
from maintainer.planning.selection.decision import Decision, leave_counted, leave_files, partition_text
from maintainer.planning.selection.file_selection import (
    deleted_rows_reason,
    has_many_deleted_rows,
    select_partitions,
)
from maintainer.planning.selection.schema_columns import FoundColumn
from maintainer.planning.zorder.turn_choice import Candidates, Chosen, choose_turn, forecast, sort_candidates
from maintainer.planning.zorder.turn_strategies import Group, leveled_groups
from maintainer.planning.zorder.zorder_options import ZOrderOptions, options_of, sample_wanted
from maintainer.planning.zorder.zorder_revision import (
    escaped_ratio,
    fitting_revision,
    incremental_columns,
    new_revision,
    ranges_of,
)
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.units import count_of, format_size

MAX_NAMED_GROUPS = 5
"""Groups that wait are named one by one up to this number, in the order in which they would be taken."""


def cube_text(cube: str | None) -> str:
    """Spell a cube for people: its bits, or that it is everything."""
    return f"cube {cube}" if cube else "the whole curve"


def turn_reason(chosen: Chosen, target: Revision, optimized: Revision, options: ZOrderOptions) -> Reason:
    """Say what the turn takes and why."""
    turn = chosen.planned_turn
    files = count_of(len(chosen.batch.files), "file")
    match turn.strategy:
        case Strategy.UNINDEXED:
            names = ", ".join(target.names())
            text = f"{files} not on the Z-order curve of {names} (revision {target.id}), oldest first"
            return Reason(ReasonCode.UNINDEXED_FILES, text, options.origin)
        case Strategy.LEVELED:
            first, company = chosen.groups[0], count_of(len(chosen.groups) - 1, "small group")
            text = (
                f"leveled: level {turn.level}, {cube_text(turn.cube)} of revision {optimized.id}: "
                f"{count_of(len(first.files), 'file')} with {first.elements:,} elements, at least {first.threshold:,}"
            ) + (f"; with it {company} of its level" if chosen.groups[1:] else "")
            return Reason(ReasonCode.CUBE_FRAGMENTS, text, options.origin)
        case Strategy.PIECES:
            excess = 0.0 if chosen.piece is None else chosen.piece.excess
            text = (
                f"pieces: {cube_text(turn.cube)} of revision {optimized.id}: {files} that a query reads {excess:.0%} "
                "more of than after it was rewritten"
            )
            return Reason(ReasonCode.CURVE_PIECE, text, options.origin)
        case _:
            assert_never(turn.strategy)


def left_on_curve(
    files: Iterable[CurveFile],
    in_turn: frozenset[tuple[str, str]],
    settings: ZOrderSettings,
    optimized: Revision,
    options: ZOrderOptions,
) -> list[LeftAlone]:
    """Say why files that are on the curve stay as they are; each is counted once."""
    rest = [file for file in files if file.file.key not in in_turn]
    left_alone: list[LeftAlone] = []
    named: set[tuple[str, str]] = set()
    if Strategy.LEVELED in settings.strategies:
        groups = [group for group in leveled_groups(rest) if len(group.files) > 1]
        ready = [group for group in groups if group.qualifies]
        small = [group for group in groups if not group.qualifies]
        for code, waiting in ((ReasonCode.WAITS_FOR_TURN, ready), (ReasonCode.BELOW_NEXT_LEVEL, small)):
            said = [(_group_text(group), [group]) for group in waiting[:MAX_NAMED_GROUPS]]
            if others := waiting[MAX_NAMED_GROUPS:]:
                said.append((f"{count_of(len(others), 'more group')} of files in one cube", others))
            for text, alike in said:
                files_alike = [file.file for group in alike for file in group.files]
                left_alone.append(leave_files(code, text, files_alike, options.origin))
                named |= {file.key for file in files_alike}
    settled = [curve_file.file for curve_file in rest if curve_file.file.key not in named]
    text = f"on the Z-order curve of {', '.join(optimized.names())} (revision {optimized.id})"
    return [*left_alone, *leave_counted(ReasonCode.SAME_ZORDER, text, settled, options.origin)]


def _group_text(group: Group) -> str:
    where = f" in {partition_text(group.partition)}" if group.partition else ""
    have = f"level {group.level}, {cube_text(group.cube)}{where}: {count_of(len(group.files), 'block')} with "
    if group.qualifies:
        return f"{have}{group.elements:,} elements, after lower levels and wider cubes"
    return f"{have}{group.elements:,} elements, fewer than {group.threshold:,}"


MAX_TURNS = 500
"""Turns of one table in one run: far more than a night has, and an end whatever happens."""


def plan_incremental(table: TableInput) -> Decision:
    """Decide the first turn.

    Raises:
        TableError: As ``zorder_columns``; T410 ``where``; T418 a property of the table that cannot be read; T426 no
            such revision; T427 a type without smallest and largest values.
        NothingToOrder: The values of the columns do not differ.
    """
    policy, facts = table.policy, table.facts
    options = options_of(policy, facts)
    columns = incremental_columns(policy, facts)
    if options.disabled_by is not None:
        text, files = f"incremental Z-order is switched off on the table ({options.disabled_by})", facts.files
        off = leave_files(ReasonCode.OFF_ON_TABLE, text, table.without_purged(files), options.origin)
        return Decision(None, (off,))
    selection = select_partitions(table)
    inside = [file for partition in selection.partitions for file in partition.files]
    target, is_new = _target(policy, columns, facts)
    optimized = _optimized(options, facts, target)
    left_alone = list(selection.left_alone)
    if options.note is not None:
        left_alone.append(LeftAlone(Reason(ReasonCode.REQUEST_IGNORED, options.note, options.origin)))
    if target is None:
        # Without a revision nothing is on a curve, and without a second file nothing can be put in order.
        left_alone += leave_counted(ReasonCode.NO_PARTNER, _ALONE, table.without_purged(inside))
        return Decision(None, tuple(left_alone))
    scoped = policy.optimize.where or policy.optimize.skip_newest_partitions or policy.optimize.quiet_for_seconds
    settings = ZOrderSettings(
        revision=target.tag,
        optimized=optimized.tag,
        strategies=_strategies(options),
        batch_bytes=options.batch_bytes,
        bytes_per_iteration=options.bytes_per_iteration,
        max_file_size_bytes=policy.optimize.max_file_size_bytes,
        max_deleted_rows_ratio=policy.optimize.max_deleted_rows_ratio,
        from_timestamp_ms=options.from_timestamp_ms,
        partitions=tuple(dict.fromkeys(p.values for p in selection.partitions)) if scoped else None,
        max_turns=MAX_TURNS,
        budget_bytes=policy.limits.max_bytes,
        budget_files=policy.limits.max_files,
        request=options.request,
    )
    candidates = sort_candidates(inside, settings, target, optimized, ranges_of(facts, optimized))
    settings, held = _worth_it(policy, settings, candidates)
    chosen, settings, left = _first_turn(settings, table, candidates, target, optimized)
    in_turn = frozenset(file.key for file in chosen.batch.files) if chosen else frozenset()
    left_alone += _left_alone(table, candidates, in_turn, settings, optimized, options, held)
    if chosen is None:
        return Decision(None, tuple(left_alone))
    written = target if chosen.planned_turn.revision == target.tag else optimized
    now, then = forecast(facts.files, chosen, written, ranges_of(facts, written), unindexed_bytes(facts.files, written))
    chosen = replace(chosen, planned_turn=replace(chosen.planned_turn, before=now, after=then))
    purging = deleted_rows_reason(policy, list(chosen.batch.files))
    step = ZOrderStep(
        batches=(chosen.batch,),
        columns=written.names(),
        max_file_size_bytes=policy.optimize.max_file_size_bytes,
        max_threads=policy.optimize.max_threads,
        reasons=(turn_reason(chosen, target, optimized, options), *purging),
        planned_turn=chosen.planned_turn,
        settings=left,
    )
    properties = None
    if is_new and chosen.planned_turn.revision == target.tag:
        name = target.property_name
        ranks = ", ".join(f"{column.name} in {column.num_ranks} ranges" for column in target.columns)
        why = Reason(ReasonCode.NEW_REVISION, f"{name}: {ranks}", options.origin)
        properties = SetPropertiesStep(((name, None),), ((name, target.to_json()),), (why,))
    return Decision(step, tuple(left_alone), properties=properties)


def without_bounds(step: ZOrderStep) -> ZOrderStep:
    """Return the step as if nothing bounded all of its turns together."""
    settings = None if step.settings is None else replace(step.settings, budget_bytes=None, budget_files=None)
    return replace(step, settings=settings)


def next_turn(
    step: ZOrderStep,
    facts: TableFacts,
    *,
    spent_bytes: int,
    spent_files: int = 0,
    first_paths: frozenset[str] | None = None,
) -> ZOrderStep | None:
    """Return the step of the next turn, from facts as they are now; None when nothing is left or may be done.

    Args:
        step: The planned step, whose settings hold for all turns.
        facts: The table now, with ``column_ranges`` of the step's columns.
        spent_bytes: Bytes that earlier turns of this run have rewritten; counted against the budget.
        spent_files: The same of files.
        first_paths: Files that were there when the loop began; other unindexed files are left to the next plan. Else
            the loop of a table to which others append all the time has no end. None takes all.
    """
    settings = step.settings
    if settings is None:
        return None
    if settings.budget_bytes is not None:
        settings = replace(settings, budget_bytes=max(0, settings.budget_bytes - spent_bytes))
    if settings.budget_files is not None:
        settings = replace(settings, budget_files=max(0, settings.budget_files - spent_files))
    by_tag = {revision.tag: revision for revision in revisions_in(facts.properties).values()}
    target, optimized = by_tag.get(settings.revision), by_tag.get(settings.optimized)
    if target is None or optimized is None:
        return None
    candidates = sort_candidates(facts.files, settings, target, optimized, ranges_of(facts, optimized))
    if first_paths is not None:
        candidates = replace(
            candidates, unindexed=tuple(file for file in candidates.unindexed if file.path in first_paths)
        )
    chosen = choose_turn(settings, candidates, target, optimized)
    if chosen is None:
        return None
    columns = (target if chosen.planned_turn.revision == target.tag else optimized).names()
    return replace(step, batches=(chosen.batch,), planned_turn=chosen.planned_turn, columns=columns)


def loop_columns(step: ZOrderStep, facts: TableFacts) -> tuple[str, ...]:
    """Return the columns whose ranges the next turn is chosen by: those of the revision that is worked on."""
    if step.settings is None:
        return step.columns
    by_tag = {revision.tag: revision.names() for revision in revisions_in(facts.properties).values()}
    return by_tag.get(step.settings.optimized, step.columns)


def _target(
    policy: ResolvedPolicy, columns: tuple[FoundColumn, ...], facts: TableFacts
) -> tuple[Revision | None, bool]:
    """The revision that files are written in, and whether it is still to be made; None where nothing needs one.

    One that fits is given up only where at most half as much escapes a new one: else every night would make another,
    for the sake of a few values that its sample does not have either.
    """
    fitting = fitting_revision(columns, facts)
    # All files decide whether a sample is read; those of them that others leave alone may want one that nobody read.
    if not sample_wanted(policy, facts) or (fitting is not None and facts.column_sample is None):
        return fitting, False
    if fitting is None and len(facts.files) < 2 and facts.size_bytes < 2 * policy.optimize.max_file_size_bytes:
        return None, False
    made = new_revision(columns, facts)
    if fitting is not None and 2 * escaped_ratio(made, facts) > escaped_ratio(fitting, facts):
        return fitting, False
    return made, True


def _optimized(options: ZOrderOptions, facts: TableFacts, target: Revision | None) -> Revision:
    """The revision whose files leveled compaction and pieces work on.

    Raises:
        TableError: T426, the one that was named does not exist.
    """
    if options.revision:
        revisions = revisions_in(facts.properties)
        if options.revision not in revisions:
            what = f"the table has no Z-order revision {options.revision}"
            help = "leave the revision out to work on the newest one"
            found = ", ".join(map(str, revisions)) or "none"
            raise TableError(what, code="T426", where=options.origin, found=found, help=help)
        return revisions[options.revision]
    return target if target is not None else Revision(0, ())


def _strategies(options: ZOrderOptions) -> tuple[Strategy, ...]:
    """Return the strategies to try; revision 0 means unindexed files, and then only these are taken."""
    if options.revision == 0:
        return tuple(strategy for strategy in options.strategies if strategy is Strategy.UNINDEXED)
    return options.strategies


def _first_turn(
    settings: ZOrderSettings, table: TableInput, candidates: Candidates, target: Revision, optimized: Revision
) -> tuple[Chosen | None, ZOrderSettings, ZOrderSettings]:
    """Choose the first turn: one within all that the limits allow, or beside a purge of every file that is due for it.

    Returns:
        The turn, what bounded it, and what bounds all turns beside the files that the purge takes since it does not.
    """
    for bounded in (settings, _beside_purge(settings, table)):
        chosen = choose_turn(bounded, candidates, target, optimized)
        files = chosen.batch.files if chosen else ()
        left = _beside_purge(settings, table, frozenset(file.key for file in files))
        most_bytes, most_files = left.budget_bytes, left.budget_files
        size_bytes = sum(file.size_bytes for file in files)
        if (most_bytes is None or size_bytes <= most_bytes) and (most_files is None or len(files) <= most_files):
            break
    return chosen, bounded, left


def _beside_purge(
    settings: ZOrderSettings, table: TableInput, in_turn: frozenset[FileKey] = frozenset()
) -> ZOrderSettings:
    """Bound all turns by what the limits leave beside the files that the purge takes if the turn does not."""
    purged = [file for key, file in table.purged.items() if key not in in_turn]
    most_bytes, most_files = settings.budget_bytes, settings.budget_files
    return replace(
        settings,
        budget_bytes=None if most_bytes is None else max(0, most_bytes - sum(file.size_bytes for file in purged)),
        budget_files=None if most_files is None else max(0, most_files - len(purged)),
    )


def _worth_it(
    policy: ResolvedPolicy, settings: ZOrderSettings, candidates: Candidates
) -> tuple[ZOrderSettings, tuple[DataFile, ...]]:
    """Apply ``optimize.when`` to the unindexed files: too few or too small, and they wait for more."""
    when, files = policy.optimize.when, candidates.unindexed
    purged = any(has_many_deleted_rows(file, policy.optimize.max_deleted_rows_ratio) for file in files)
    few = when.min_small_files is not None and len(files) < when.min_small_files
    small = when.min_small_bytes is not None and sum(file.size_bytes for file in files) < when.min_small_bytes
    if settings.request or purged or not files or not (few or small):
        return settings, ()
    others = tuple(strategy for strategy in settings.strategies if strategy is not Strategy.UNINDEXED)
    return replace(settings, strategies=others), files


_ALONE = "alone in a partition: Z-order within one file lets a query skip no file"


def _left_alone(
    table: TableInput,
    candidates: Candidates,
    in_turn: frozenset[tuple[str, str]],
    settings: ZOrderSettings,
    optimized: Revision,
    options: ZOrderOptions,
    held: tuple[DataFile, ...],
) -> list[LeftAlone]:
    """Every live file of the selected partitions that the turn does not take, each counted once."""
    left_alone: list[LeftAlone] = []
    not_taken = [file for file in candidates.unindexed if file.key not in in_turn]
    unindexed, most = table.without_purged(not_taken), settings.budget_bytes
    if unindexed:
        code, why = ReasonCode.SAME_ZORDER, ": the strategy `unindexed` is off"
        if held:
            code, why = ReasonCode.NOT_WORTH_IT, ": not worth it yet (optimize.when)"
        elif Strategy.UNINDEXED in settings.strategies and most is not None and unindexed[0].size_bytes > most:
            oldest, limit = format_size(unindexed[0].size_bytes), format_size(most)
            less = " less the purge" if most != table.policy.limits.max_bytes else ""
            code, why = ReasonCode.OVER_LIMIT, f": the oldest has {oldest}, limits.maxBytes{less} is {limit}"
        elif Strategy.UNINDEXED in settings.strategies:
            code, why = ReasonCode.WAITS_FOR_TURN, " for later turns"
        text = f"{count_of(len(unindexed), 'unindexed file')}{why}"
        left_alone.append(leave_files(code, text, unindexed, options.origin))
    several, origin = (candidates.too_old, candidates.alone, candidates.other_revision), options.origin
    too_old, alone, other = map(table.without_purged, several)
    return [
        *left_alone,
        *leave_counted(ReasonCode.BEFORE_TIMESTAMP, "written before fromTimestamp", too_old, origin, "unindexed file"),
        *leave_counted(ReasonCode.NO_PARTNER, _ALONE, alone, origin),
        *leave_counted(ReasonCode.SAME_ZORDER, "of the newest revision, which is not worked on", other, origin),
        *left_on_curve(candidates.on_curve, in_turn.union(table.purged), settings, optimized, options),
    ]
