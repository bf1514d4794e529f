"""Choose the command and settings that take the planned files, and compute which files it will take. Pure.

A command cannot be given a list of files. In the partitions that ``WHERE`` names it takes the files under
``minFileSize`` and those with more deleted rows than ``maxDeletedRowsRatio``, packs them next-fit into bins of
``maxFileSize``, and drops bins of one file. The same is computed here for a few pairs of settings. The pair wins whose
files differ least from the planned ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from maintainer.delta.commands.command_facts import no_command
from maintainer.delta.commands.command_session import in_partitions, optimize, reorg_purge
from maintainer.delta.spark.session_settings import PADS_CHAR
from maintainer.errors import CommitConflict, Refused
from maintainer.model.plan.steps import (
    Batch,
    ClusterStep,
    CompactStep,
    PurgeStep,
    RewriteStep,
    ZOrderStep,
)
from maintainer.model.run.receipts import against
from maintainer.model.table.table_facts import DataFile, PartitionValues, TableFacts
from maintainer.planning.operations.clustering import taken_by_optimize
from maintainer.planning.selection.decision import partition_text
from maintainer.planning.selection.file_selection import pack_bins
from maintainer.planning.selection.partition_texts import respelled_by_commands, value_order
from maintainer.planning.selection.schema_columns import partition_types
from maintainer.units import format_size

_OPTIMIZE = "spark.databricks.delta.optimize."
_SMALLEST_STEP = 1e-9


@dataclass(frozen=True, slots=True)
class Selected:
    """A command, its settings, and the files that it will take.

    ``beyond`` are taken and not planned, ``untaken`` are planned and not taken.
    """

    statement: str
    settings: tuple[tuple[str, str | None], ...]
    takes: tuple[DataFile, ...]
    beyond: tuple[DataFile, ...]
    untaken: tuple[DataFile, ...]


def select(facts: TableFacts, step: RewriteStep, batch: Batch, table: str) -> Selected:
    """Choose the command and its settings for one batch.

    Args:
        facts: The table now.
        step: The step; gives sizes, threads and Z-order columns.
        batch: The files that the plan wants rewritten together.
        table: The table as a statement names it.
    """
    # By their texts: a time with its zone is the same moment whatever zone the session has.
    texts = {bin_.partition_texts for bin_ in batch.bins}
    where = in_partitions(texts, partition_types(facts))
    files = [file for file in facts.files if file.partition_texts in texts]
    match step:
        case ZOrderStep():
            statement = optimize(table, where, step.columns)
            return _selected(statement, _settings(step, None, None), files, batch)
        case CompactStep():
            return _compaction(step, batch, files, table, where)
        case PurgeStep():
            purged = [file for file in files if file.deletion_vector is not None]
            taken = _packed(purged, step.max_file_size_bytes, lone=True)
            return _selected(reorg_purge(table, where), _settings(step, None, None), taken, batch)
        case ClusterStep():
            statement = optimize(table, "true", full=step.full)
            taken = list(taken_by_optimize(facts.files, step.columns, step.min_cube_size_bytes, full=step.full))
            return _selected(statement, (*_settings(step, None, None), *_cube_settings(step)), taken, batch)
        case _:
            raise no_command(facts.ref.identifier, "a rewrite into files of a number, a size or an order")


def refuse_other_spelling(facts: TableFacts, batch: Batch, where: str) -> None:
    """Refuse partitions whose text the command would change; planning left alone those that it saw.

    Raises:
        CommitConflict: C701.
    """
    changed = {bin_.partition_values for bin_ in batch.bins} & respelled_by_commands(facts)
    if changed:
        raise CommitConflict(
            "Delta's command would spell a partition in another way in the log: some readers would see another value",
            where=where,
            found=f"{partition_text(min(changed, key=value_order))}, spelled in another way since the plan was made",
            help="plan again, which leaves it alone, or use --engine transaction",
        )


def refuse_part_of_a_partition(selected: Selected, step: RewriteStep, batch: Batch, where: str) -> None:
    """Refuse a Z-order of some files of a partition: ``OPTIMIZE ... ZORDER BY`` takes partitions whole.

    A few files that were appended since the plan are taken along; more bytes than were planned are not.

    Raises:
        Refused: A441.
    """
    beyond = sum(file.size_bytes for file in selected.beyond)
    if isinstance(step, ZOrderStep) and beyond > batch.size_bytes:
        raise Refused(
            "a command cannot put some files of a partition in Z-order and leave the others",
            code="A441",
            where=where,
            found=f"{format_size(batch.size_bytes)} planned, {format_size(beyond)} beside them would be rewritten",
            help="set `mode: full` in optimize.zorder, or use --engine transaction",
        )


def _compaction(step: CompactStep, batch: Batch, files: list[DataFile], table: str, where: str) -> Selected:
    choices = [
        _selected(
            optimize(table, where),
            _settings(step, size, ratio),
            _packed(_candidates(files, size, ratio), step.max_file_size_bytes, lone=False),
            batch,
        )
        for size, ratio in _thresholds(batch)
    ]
    if any(len(bin_.files) == 1 for bin_ in batch.bins):
        # OPTIMIZE drops bins of one file; only REORG rewrites a lone file with deleted rows.
        purged = [file for file in files if file.deletion_vector is not None]
        taken = _packed(purged, step.max_file_size_bytes, lone=True)
        choices.append(_selected(reorg_purge(table, where), _settings(step, None, None), taken, batch))
    return min(choices, key=lambda choice: (_difference(choice), choice.statement))


def _difference(selected: Selected) -> tuple[bool, int]:
    """Bytes taken beside the plan and bytes of it not taken, for a comparison; taking nothing is the worst."""
    return (not selected.takes, sum(file.size_bytes for file in (*selected.beyond, *selected.untaken)))


def _thresholds(batch: Batch) -> list[tuple[int, float]]:
    """Return the narrowest pairs of minFileSize and maxDeletedRowsRatio that take all planned files."""
    files = batch.files
    whole = max(file.size_bytes for file in files) + 1
    pairs = [(whole, 1.0)]
    ratios = [file.deleted_rows_ratio for file in files if file.deleted_rows_ratio]
    if ratios:
        ratio = max(0.0, min(ratios) - _SMALLEST_STEP)
        sizes = [file.size_bytes for file in files if not file.deleted_rows_ratio]
        pairs += [(max(sizes, default=-1) + 1, ratio), (whole, ratio)]
    return pairs


def _candidates(files: Iterable[DataFile], size: int, ratio: float) -> list[DataFile]:
    """Files that OPTIMIZE considers, as its source says."""

    def deleted(file: DataFile) -> bool:
        if file.deletion_vector is None:
            return False
        return file.physical_records is None or (file.deleted_rows_ratio or 0.0) > ratio

    return [file for file in files if file.size_bytes < size or deleted(file)]


def _packed(files: Iterable[DataFile], max_bin_bytes: int, *, lone: bool) -> list[DataFile]:
    groups: dict[PartitionValues, list[DataFile]] = defaultdict(list)
    for file in files:
        groups[file.partition_texts].append(file)
    bins = [bin_ for group in groups.values() for bin_ in pack_bins(group, max_bin_bytes=max_bin_bytes)]
    return [file for bin_ in bins if lone or len(bin_.files) > 1 for file in bin_.files]


def _cube_settings(step: ClusterStep) -> tuple[tuple[str, str | None], ...]:
    """Delta's bounds of a cube, with the plan's values instead of the defaults."""
    return (
        (f"{_OPTIMIZE}clustering.mergeStrategy.minCubeSize.threshold", str(step.min_cube_size_bytes)),
        (f"{_OPTIMIZE}clustering.mergeStrategy.minCubeSize.targetCubeSize", str(step.target_cube_size_bytes)),
    )


def _settings(
    step: CompactStep | ZOrderStep | PurgeStep | ClusterStep, size: int | None, ratio: float | None
) -> tuple[tuple[str, str | None], ...]:
    settings: list[tuple[str, str | None]] = [
        (f"{_OPTIMIZE}maxFileSize", str(step.max_file_size_bytes)),
        (f"{_OPTIMIZE}maxThreads", str(step.max_threads)),
        # How `partition_texts` expects times to be written.
        ("spark.databricks.delta.write.utcTimestampPartitionValues", "true"),
        # Texts of CHAR columns stay as they are stored.
        (PADS_CHAR, "false"),
        # One commit for the batch, as the plan has it.
        (f"{_OPTIMIZE}batchSize", None),
        (f"{_OPTIMIZE}repartition.enabled", "true" if isinstance(step, CompactStep) and step.repartition else None),
        (f"{_OPTIMIZE}minFileSize", None if size is None else str(size)),
        (f"{_OPTIMIZE}maxDeletedRowsRatio", None if ratio is None else f"{ratio:.12f}"),
    ]
    if step.codec is not None:
        settings.append(("spark.sql.parquet.compression.codec", step.codec.value))
    return tuple(settings)


def _selected(
    statement: str, settings: tuple[tuple[str, str | None], ...], files: Iterable[DataFile], batch: Batch
) -> Selected:
    takes = tuple(files)
    beyond, untaken = against(takes, batch.files)
    return Selected(statement, settings, takes, beyond, untaken)
