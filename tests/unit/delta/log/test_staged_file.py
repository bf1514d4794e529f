"""Statistics of a file of which rows were deleted: the same figures, not tight."""

from __future__ import annotations

import json
import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maintainer.delta.log.staged_file import widened

figures = st.one_of(
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.text().map(json.dumps),
    st.sampled_from(["null", "true", "1.50", "-0.0", "1E+3"]),
)


@given(st.dictionaries(st.text(), figures), st.booleans())
def test_every_figure_is_written_as_it_was(values: dict[str, str], is_tight: bool) -> None:
    inner = ", ".join(f"{json.dumps(name)}: {text}" for name, text in values.items())
    stats = f'{{"numRecords": 3, "minValues": {{"s": {{{inner}}}}}, "tightBounds": {json.dumps(is_tight)}}}'
    exact = {"parse_float": Decimal, "parse_int": str}
    before, after = (json.loads(text, **exact) for text in (stats, widened(stats)))
    assert after == {**before, "tightBounds": False}
    assert list(after) == ["numRecords", "minValues", "tightBounds"]


@pytest.mark.parametrize("text", ["12345678901234567890.1234567891", "9999999999999999.99", "-0.0", "1e400"])
def test_a_decimal_is_no_float(text: str) -> None:
    stats = f'{{"maxValues":{{"d":{text}}}}}'
    assert widened(stats) == f'{{"maxValues":{{"d":{text}}},"tightBounds":false}}'
    assert not math.isnan(float(text))
