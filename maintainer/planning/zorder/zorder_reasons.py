"""Name the reasons of incremental Z-order: why a turn takes its files and why the others wait."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from maintainer.model.closed_types import assert_never
from maintainer.model.plan.plan import LeftAlone
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.zorder_turn import Strategy, ZOrderSettings
from maintainer.planning.curve.curve_files import CurveFile
from maintainer.planning.curve.revision import Revision
from maintainer.planning.selection.decision import count_of, leave_files, partition_text
from maintainer.planning.zorder.leveled_compaction import Group, leveled_groups
from maintainer.planning.zorder.turn_choice import Chosen
from maintainer.planning.zorder.zorder_options import ZOrderOptions

MAX_NAMED_GROUPS = 5
"""Groups that wait are named one by one up to this number, in the order in which they would be taken."""


def cube_text(cube: str | None) -> str:
    """Spell a cube for people: its bits, or that it is everything."""
    return f"cube {cube}" if cube else "the whole curve"


def turn_reason(chosen: Chosen, target: Revision, optimized: Revision, options: ZOrderOptions) -> Reason:
    """Say what the turn takes and why."""
    turn = chosen.turn
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
    chosen: Chosen | None,
    taken: frozenset[tuple[str, str]],
    settings: ZOrderSettings,
    optimized: Revision,
    options: ZOrderOptions,
) -> list[LeftAlone]:
    """Say why files that are on the curve stay as they are; each is counted once."""
    rest = [file for file in files if file.file.key not in taken]
    left_alone: list[LeftAlone] = []
    named: set[tuple[str, str]] = set()
    if Strategy.LEVELED in settings.strategies:
        groups = [group for group in leveled_groups(rest) if len(group.files) > 1]
        ready = [group for group in groups if group.qualifies]
        small = [group for group in groups if not group.qualifies]
        for code, waiting in ((ReasonCode.WAITS_FOR_TURN, ready), (ReasonCode.BELOW_NEXT_LEVEL, small)):
            for group in waiting[:MAX_NAMED_GROUPS]:
                text = _group_text(group)
                left_alone.append(_leave(code, text, group.files, options.origin))
            others = [file for group in waiting[MAX_NAMED_GROUPS:] for file in group.files]
            if others:
                more = f"{count_of(len(waiting) - MAX_NAMED_GROUPS, 'more group')} of files in one cube"
                left_alone.append(_leave(code, more, others, options.origin))
            named |= {file.file.key for group in waiting for file in group.files}
    settled = [curve_file for curve_file in rest if curve_file.file.key not in named]
    if settled:
        listed = ", ".join(optimized.names())
        text = f"{count_of(len(settled), 'file')} on the Z-order curve of {listed} (revision {optimized.id})"
        left_alone.append(_leave(ReasonCode.SAME_ZORDER, text, settled, options.origin))
    return left_alone


def _group_text(group: Group) -> str:
    where = f" in {partition_text(group.partition)}" if group.partition else ""
    have = f"level {group.level}, {cube_text(group.cube)}{where}: {count_of(len(group.files), 'block')} with "
    if group.qualifies:
        return f"{have}{group.elements:,} elements, after lower levels and wider cubes"
    return f"{have}{group.elements:,} elements, fewer than {group.threshold:,}"


def _leave(code: ReasonCode, text: str, files: Sequence[CurveFile], origin: str) -> LeftAlone:
    return leave_files(code, text, [file.file for file in files], origin)
