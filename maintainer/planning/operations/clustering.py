"""Plan liquid clustering: which files of a clustered table are put on the curve again, and which are left alone.

Files that one run clustered together are a *cube* (Delta tags them with its id and the columns). As ``OPTIMIZE`` on a
clustered table, this takes files in no cube and cubes smaller than ``minCubeSize``, unless there is only one cube.
Two differences. The policy sets the bound of a cube, 10 GiB by default: below Delta's 100 GiB, one appended file makes
OPTIMIZE rewrite the whole table (41 GB for 1 GB appended, delta issue 4304). And small cubes are merged only together
with files in none, or when the configured sizes have changed: a result may be smaller than its input suggested, and a
second run with nothing new must commit nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from maintainer.errors import TableError
from maintainer.model.plan.layout_tags import CLUSTER_CUBE_TAG, LIQUID, ZCUBE_COLUMNS_TAG, ZCUBE_ID_TAG
from maintainer.model.plan.reasons import Reason, ReasonCode
from maintainer.model.plan.steps import Bin, ClusterStep
from maintainer.model.table.table_facts import DataFile, TableFacts
from maintainer.planning.operations.compaction import weigh
from maintainer.planning.plan_input import TableInput
from maintainer.planning.selection.decision import Decision, leave_counted
from maintainer.planning.selection.file_selection import file_order, pack_batches, pack_in_order, select_partitions
from maintainer.planning.selection.schema_columns import at_version
from maintainer.policy.resolve.resolved import ResolvedPolicy
from maintainer.units import count_of, format_size, grouped


@dataclass(frozen=True, slots=True)
class _Chosen:
    to_cluster: tuple[DataFile, ...] = ()
    sealed: tuple[DataFile, ...] = ()
    other: tuple[DataFile, ...] = ()
    done: tuple[DataFile, ...] = ()


def plan_clustering(table: TableInput) -> Decision:
    """Decide which files of a table with clustering columns are clustered.

    Raises:
        TableError: T410 ``where``, T423 the policy asks for a layout that clustering excludes.
    """
    policy, facts = table.policy, table.facts
    _refuse_other_layouts(policy, facts)
    optimize, cluster = policy.optimize, policy.optimize.cluster
    selection = select_partitions(table)
    left_alone = list(selection.left_alone)
    selected = [file for partition in selection.partitions for file in partition.files]
    request = f"{cluster.min_cube_size_bytes}/{cluster.target_cube_size_bytes}"
    chosen = _choose(selected, facts.clustering_columns, cluster.min_cube_size_bytes, request, full=cluster.full)
    bins = list(pack_in_order(chosen.to_cluster, max_bin_bytes=cluster.bin_size_bytes))
    least, full = policy.place_of("optimize.cluster.minCubeSize"), policy.place_of("optimize.cluster.full")
    in_cubes = f"in cubes of {format_size(cluster.min_cube_size_bytes)} or more"
    sealed, other, done = map(table.without_purged, (chosen.sealed, chosen.other, chosen.done))
    left_alone += leave_counted(ReasonCode.SEALED_CUBE, in_cubes, sealed, least)
    left_alone += leave_counted(ReasonCode.OTHER_CLUSTERING, "clustered by other columns before", other, full)
    clustered = "clustered already, no file without a cube beside them"
    left_alone += leave_counted(ReasonCode.SAME_CLUSTERING, clustered, done, least)

    def is_due(file: DataFile) -> bool:
        return cube_of(file) is None or not _is_ours(file, facts.clustering_columns)

    bins, not_worth_it = weigh(table, bins, is_due, "file not clustered", "files not clustered")
    left_alone += not_worth_it
    if not bins:
        return Decision(None, tuple(left_alone))
    step = ClusterStep(
        batches=pack_batches(bins, batch_size_bytes=optimize.batch_size_bytes),
        columns=facts.clustering_columns,
        min_cube_size_bytes=cluster.min_cube_size_bytes,
        target_cube_size_bytes=cluster.target_cube_size_bytes,
        max_file_size_bytes=optimize.max_file_size_bytes,
        max_threads=optimize.max_threads,
        full=cluster.full,
        reasons=_reasons(policy, facts, bins),
    )
    return Decision(step, tuple(left_alone))


def cube_of(file: DataFile) -> tuple[str, tuple[str, ...]] | None:
    """Return the cube a file belongs to: its id and the columns it was clustered by; None for a file in none.

    Tags that cannot be read count as none, so that the file is clustered again.
    """
    identity, columns = file.tag(ZCUBE_ID_TAG), file.tag(ZCUBE_COLUMNS_TAG)
    if identity is None or columns is None:
        return None
    try:
        names = json.loads(columns)
    except ValueError:
        return None
    return (identity, tuple(str(name) for name in names)) if isinstance(names, list) else None


def taken_by_optimize(
    files: Iterable[DataFile], columns: tuple[str, ...], min_cube_size_bytes: int, *, full: bool
) -> tuple[DataFile, ...]:
    """Return the files that Delta's own OPTIMIZE takes: small cubes are merged also with nothing new beside them."""
    chosen = _choose(list(files), columns, min_cube_size_bytes, "", full=full)
    return chosen.to_cluster


def _choose(
    files: list[DataFile], columns: tuple[str, ...], min_cube_size_bytes: int, request: str, *, full: bool
) -> _Chosen:
    other = [file for file in files if not _is_ours(file, columns)]
    others = {file.key for file in other}
    candidates = sorted((file for file in files if file.key not in others), key=_cube_order)
    cubes = grouped(candidates, lambda file: cube[0] if (cube := cube_of(file)) else None)
    loose = cubes.pop(None, [])
    small = {name: cube for name, cube in cubes.items() if _live_bytes(cube) < min_cube_size_bytes}
    sealed = [file for name, cube in cubes.items() if name not in small for file in cube]
    in_small = [file for cube in small.values() for file in cube]
    if full and other:
        return _Chosen((*loose, *in_small, *sorted(other, key=_cube_order)), tuple(sealed))
    if loose or (len(small) > 1 and any(file.tag(CLUSTER_CUBE_TAG) != request for file in in_small)):
        return _Chosen((*loose, *in_small), tuple(sealed), tuple(other))
    return _Chosen((), tuple(sealed), tuple(other), tuple(in_small))


def _is_ours(file: DataFile, columns: tuple[str, ...]) -> bool:
    """Whether the file is in no cube, or in one of liquid clustering by today's columns."""
    cube = cube_of(file)
    return file.clustering_provider in (None, LIQUID) and (cube is None or cube[1] == columns)


def _cube_order(file: DataFile) -> tuple[str, tuple[int, str, str]]:
    return (file.tag(ZCUBE_ID_TAG) or "", file_order(file))


def _live_bytes(cube: list[DataFile]) -> int:
    """Bytes of a cube without the share of soft-deleted rows, as Delta weighs it against the bound."""
    return sum(int(file.size_bytes * (1.0 - (file.deleted_rows_ratio or 0.0))) for file in cube)


def _reasons(policy: ResolvedPolicy, facts: TableFacts, bins: list[Bin]) -> tuple[Reason, ...]:
    files = [file for bin_ in bins for file in bin_.files]
    loose = sum(cube_of(file) is None for file in files)
    other = sum(not _is_ours(file, facts.clustering_columns) for file in files)
    parts = [f"{count_of(loose, 'file')} not clustered by {', '.join(facts.clustering_columns)}"] if loose else []
    if other:
        parts.append(f"{count_of(other, 'file')} clustered by other columns before")
    small = len(files) - loose - other
    if small:
        size = format_size(policy.optimize.cluster.min_cube_size_bytes)
        parts.append(f"{count_of(small, 'file')} in cubes under {size}")
    return (Reason(ReasonCode.CLUSTERING_DUE, ", ".join(parts), policy.place_of("optimize.cluster.minCubeSize")),)


def _refuse_other_layouts(policy: ResolvedPolicy, facts: TableFacts) -> None:
    for key, layout in (("zorder", policy.optimize.zorder), ("rewrite", policy.optimize.rewrite)):
        if layout is not None:
            what = f"the table is clustered by {', '.join(facts.clustering_columns)}: `{key}` would undo it"
            help = f"remove optimize.{key}, or end the clustering with ALTER TABLE ... CLUSTER BY NONE"
            where = policy.place_of(f"optimize.{key}")
            raise TableError(what, code="T423", where=where, found=at_version(facts), help=help)
