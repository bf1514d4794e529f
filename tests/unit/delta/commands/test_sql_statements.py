"""The text of commands: names, paths and values are quoted, whatever they hold."""

from __future__ import annotations

import pytest

from maintainer.delta.commands.command_session import (
    in_partitions,
    optimize,
    reorg_purge,
    set_properties,
    table_name,
    text_literal,
)
from maintainer.model.table.table_facts import TableRef


def test_tables_by_name_and_by_path() -> None:
    assert table_name(TableRef("sales.orders")) == "`sales`.`orders`"
    assert table_name(TableRef("a.`b.c`.d")) == "`a`.`b.c`.`d`"
    assert table_name(TableRef("a`; DROP TABLE x; --")) == "`a; DROP TABLE x; --`"
    assert table_name(TableRef("t", "/data/it's `odd`")) == "delta.`/data/it's ``odd```"
    assert table_name(TableRef("s3a://lake/a b")) == "delta.`s3a://lake/a b`"


@pytest.mark.parametrize(
    ("text", "literal"),
    [("a b", "'a b'"), ("it's", "'it\\'s'"), ("back\\", "'back\\\\'"), ("\\' OR true --", "'\\\\\\' OR true --'")],
)
def test_literals(text: str, literal: str) -> None:
    assert text_literal(text) == literal


def test_partitions_are_named_by_type() -> None:
    types = {"p": "string", "d": "date", "n": "decimal(9,2)"}
    first = (("p", "it's"), ("d", "2024-01-31"), ("n", "1.50"))
    second = (("p", ""), ("d", None), ("n", None))
    assert in_partitions([first, second], types) == (
        "(`p` = '' AND `d` IS NULL AND `n` IS NULL)"
        " OR (`p` = 'it\\'s' AND `d` = CAST('2024-01-31' AS date) AND `n` = CAST('1.50' AS decimal(9,2)))"
    )
    assert in_partitions([()], {}) == "true"


def test_commands() -> None:
    assert optimize("delta.`x`", "true") == "OPTIMIZE delta.`x`"
    assert (
        optimize("delta.`x`", "`p` = '1'", ("`a b`", "c")) == "OPTIMIZE delta.`x` WHERE `p` = '1' ZORDER BY (`a b`, c)"
    )
    assert reorg_purge("delta.`x`", "`p` = '1'") == "REORG TABLE delta.`x` WHERE `p` = '1' APPLY (PURGE)"
    assert reorg_purge("delta.`x`", "true") == "REORG TABLE delta.`x` APPLY (PURGE)"
    assert (
        set_properties("t", {"a": "b", "it's": "\\"})
        == "ALTER TABLE t SET TBLPROPERTIES ('a' = 'b', 'it\\'s' = '\\\\')"
    )
