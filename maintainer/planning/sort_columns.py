"""Columns of ``optimize.rewrite.sortBy`` against the table: they exist, and rows of a file differ in them."""

from __future__ import annotations

from maintainer.errors import TableError
from maintainer.model.table import TableFacts
from maintainer.planning.columns import FoundColumn, find_column, nearest_column
from maintainer.policy.resolved import ResolvedPolicy

_UNORDERED_TYPES = ("array", "map", "struct", "variant", "geometry", "geography", "void", "interval")


def check_sort_columns(policy: ResolvedPolicy, facts: TableFacts) -> tuple[str, ...]:
    """Return the columns to sort by as the schema spells them, safe for Spark to parse again.

    Raises:
        TableError: T411 no such column, T412 a partition column, T414 a type without order, T420 a column twice.
    """
    rewrite = policy.optimize.rewrite
    if rewrite is None:
        raise ValueError("the policy has no rewrite")
    where = str(policy.origin("optimize.rewrite.sortBy"))
    partition_columns = {name.lower() for name in facts.partition_columns}
    columns: list[FoundColumn] = []
    for name in rewrite.sort_by:
        column = find_column(facts, name)
        if column is None:
            close = nearest_column(facts, name)
            help = f"did you mean `{close}`?" if close else f"the table has {', '.join(facts.columns)}"
            raise TableError(f"sort column `{name}` does not exist", code="T411", where=where, found=name, help=help)
        if column.dotted.lower() in partition_columns:
            raise _refused(column, "is a partition column: all of a file has one value of it", "T412", where)
        if column.type_name.startswith(_UNORDERED_TYPES):
            raise _refused(column, f"has a type without order, {column.type_name}", "T414", where)
        columns.append(column)
    if len(set(columns)) < len(columns):
        raise TableError(
            "a sort column is named twice",
            code="T420",
            where=where,
            found=", ".join(rewrite.sort_by),
            help="remove one of the two",
        )
    return tuple(column.quoted for column in columns)


def _refused(column: FoundColumn, what: str, code: str, where: str) -> TableError:
    return TableError(
        f"sort column `{column.dotted}` {what}",
        code=code,
        where=where,
        found=column.dotted,
        help="leave it out of optimize.rewrite.sortBy",
    )
