"""The templates have a branch for each class of block, and print no page that leaves one out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast, get_args

import pytest
from jinja2 import nodes

from maintainer.report.document.blocks import Block
from maintainer.report.html.page import Page, render_page, templates


def compared_kinds() -> set[str]:
    """Every word that ``blocks.html`` compares the class of a block with."""
    environment = templates()
    assert environment.loader is not None
    source, _, _ = environment.loader.get_source(environment, "blocks.html")
    return {
        str(operand.expr.value)
        for compare in environment.parse(source).find_all(nodes.Compare)
        if isinstance(compare.expr, nodes.Name) and compare.expr.name == "kind"
        for operand in compare.ops
        if isinstance(operand.expr, nodes.Const)
    }


def test_each_class_of_block_has_a_branch_and_each_branch_a_class() -> None:
    assert compared_kinds() == {kind.__name__ for kind in get_args(Block)}


@dataclass(frozen=True)
class Footnote:
    text: str


def test_a_block_of_an_unknown_class_is_an_error_and_not_left_out() -> None:
    unknown = cast(Block, Footnote("rows were lost"))
    for page in (Page("t", (unknown,), ()), Page("t", (), (unknown,))):
        with pytest.raises(AssertionError, match="Footnote"):
            render_page(page)
