"""Look up a policy's Z-order columns in a table's schema, or refuse them by name with the policy's line."""

from __future__ import annotations

from maintainer.errors import TableError
from maintainer.model.table.table_facts import TableFacts
from maintainer.planning.selection.schema_columns import FoundColumn, find_column, nearest_column
from maintainer.planning.zorder.zorder_revision import usable_columns
from maintainer.policy.resolve.resolved import ResolvedPolicy

_LEAVE_OUT = "leave it out of optimize.zorder.columns"
_UNORDERED_TYPES = ("array", "map", "struct", "variant", "geometry", "geography", "void", "interval")


def zorder_columns(policy: ResolvedPolicy, facts: TableFacts) -> tuple[FoundColumn, ...]:
    """Return the Z-order columns as the schema spells them.

    Raises:
        TableError: T411 no such column, T412 a partition column, T413 a column without statistics, T427 one of
            which there never are any, T414 a type that has no order, T420 a column twice; all wrong columns of one
            kind are named at once.
    """
    zorder = policy.optimize.zorder
    if zorder is None:
        raise ValueError("the policy has no zorder")
    where = policy.place_of("optimize.zorder.columns")
    partition_columns = {name.lower() for name in facts.partition_columns}
    by_name = [(name, find_column(facts, name)) for name in zorder.columns]
    missing = [name for name, column in by_name if column is None]
    if missing:
        close = nearest_column(facts, missing[0])
        raise TableError(
            f"Z-order column {_names(missing)} does not exist",
            code="T411",
            where=where,
            found=", ".join(missing),
            help=f"did you mean `{close}`?" if close else f"the table has {', '.join(facts.columns)}",
        )
    columns = [column for _, column in by_name if column is not None]
    _refuse(
        where,
        "T412",
        "is a partition column: all of a file has one value of it",
        [column for column in columns if column.dotted.lower() in partition_columns],
    )
    _refuse(
        where,
        "T414",
        "has a type without order",
        [column for column in columns if column.type_name.startswith(_UNORDERED_TYPES)],
        types=True,
    )
    with_stats = {name.lower() for name in facts.columns_with_stats}
    without = [column for column in columns if column.quoted.lower() not in with_stats]
    # For these no setting helps: Delta keeps none of a boolean or of bytes, wherever the column stands.
    usable_columns(tuple(without), where)
    _refuse(
        where,
        "T413",
        "has no statistics, so no file could be skipped by it",
        without,
        help="name it in delta.dataSkippingStatsColumns, or raise delta.dataSkippingNumIndexedCols",
    )
    if len(set(columns)) < len(columns):
        raise TableError(
            "a Z-order column is named twice",
            code="T420",
            where=where,
            found=", ".join(zorder.columns),
            help="remove one of the two",
        )
    return tuple(columns)


def _refuse(
    where: str, code: str, what: str, columns: list[FoundColumn], *, types: bool = False, help: str = _LEAVE_OUT
) -> None:
    if not columns:
        return
    names_in_table = [f"{column.dotted} {column.type_name}" if types else column.dotted for column in columns]
    names = _names([column.dotted for column in columns])
    raise TableError(
        f"Z-order column {names} {what}", code=code, where=where, found=", ".join(names_in_table), help=help
    )


def _names(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
