"""Read and evaluate partition predicates (``optimize.where``): a small grammar of our own, never SQL for an engine.

Example:
    >>> predicate = parse_predicate("order_day >= current_date() - 7")
    >>> predicate.evaluate({"order_day": "2026-11-20"}, {"order_day": "date"}, date(2026, 11, 21))
    True
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date

from maintainer.policy.predicate.predicate_ast import Node, columns_of, format_node
from maintainer.policy.predicate.predicate_eval import PredicateTypeError, bind_node
from maintainer.policy.predicate.predicate_lex import PredicateError
from maintainer.policy.predicate.predicate_parse import parse_node

__all__ = ["Predicate", "PredicateError", "PredicateTypeError", "parse_predicate"]


@dataclass(frozen=True, slots=True)
class Predicate:
    """A predicate that has been read; two are equal when their trees are."""

    root: Node

    @property
    def text(self) -> str:
        """The canonical spelling: reading it again gives an equal predicate."""
        return format_node(self.root)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns it mentions, each once, in the order of the text, as written."""
        return tuple(dict.fromkeys(column.name for column in columns_of(self.root)))

    def bind(self, types: Mapping[str, str], today: date) -> Callable[[Mapping[str, str | None]], bool]:
        """Check the predicate against a table's partition columns, and return the test of one partition.

        Use this to test many partitions: literals are checked and converted once.

        Args:
            types: Spark's type name of each partition column, by logical name. Names that differ from the
                predicate's only in case are found, as Spark does.
            today: What ``current_date()`` means, in the zone of the project.

        Returns:
            A function of partition values as the log serializes them. A missing or empty value is null;
            only a predicate that is true selects, one that is unknown does not.

        Raises:
            PredicateTypeError: A column is no partition column, or a literal does not fit its type. The
                function raises it for a value in the log that is not of its column's type.
        """
        evaluator = bind_node(self.root, types, today)
        return lambda partition_values: evaluator(partition_values) is True

    def evaluate(self, partition_values: Mapping[str, str | None], types: Mapping[str, str], today: date) -> bool:
        """Tell whether one partition is selected; see ``bind``."""
        return self.bind(types, today)(partition_values)

    def __str__(self) -> str:
        return self.text


def parse_predicate(text: str) -> Predicate:
    """Read a predicate.

    Args:
        text: What a policy's ``where`` says; at most 8,192 characters and 32 levels.

    Raises:
        PredicateError: The text is not in the grammar; carries offset, length and help.
    """
    return Predicate(parse_node(text))
