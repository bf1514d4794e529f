"""Plans as documents: they come back equal, and no edit goes unseen."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maintainer.errors import Refused
from maintainer.model.plan.plan_document import from_json, to_json
from maintainer.model.table.table_facts import TableFacts, TableRecord
from maintainer.planning.plan_input import TableInput
from maintainer.planning.planner import assemble, plan_table
from maintainer.policy.resolve.resolved import ResolvedPolicy
from tests.support.policies.edited_documents import digest_of
from tests.support.policies.strategies import TODAY, planning_inputs
from tests.support.tables.builders import NOW_MS

Inputs = tuple[ResolvedPolicy, TableFacts, TableRecord]


@given(planning_inputs())
def test_a_plan_comes_back_equal_and_is_written_the_same_again(inputs: Inputs) -> None:
    joined = assemble([plan_table(TableInput(*inputs, NOW_MS, TODAY))], created_at_ms=NOW_MS)
    plan = replace(joined, git_commit="3f2c1a9")
    text = to_json(plan)
    assert from_json(text) == plan
    assert to_json(from_json(text)) == text


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in _places(item, (*path, key)))]


@given(planning_inputs(), st.data())
def test_any_edit_is_refused(inputs: Inputs, data: st.DataObject) -> None:
    document = json.loads(to_json(assemble([plan_table(TableInput(*inputs, NOW_MS, TODAY))], created_at_ms=NOW_MS)))
    *above, last = data.draw(st.sampled_from(_places(document)[1:]))
    holder: Any = document
    for key in above:
        holder = holder[key]
    if data.draw(st.booleans()) or not isinstance(holder[last], (int, str)):
        del holder[last]
    else:
        holder[last] = holder[last] + (1 if isinstance(holder[last], int) else "x")
    with pytest.raises(Refused) as refused:
        from_json(json.dumps(document))
    assert refused.value.code == "A402"


@given(planning_inputs(), st.data())
def test_a_forged_digest_does_not_let_a_broken_document_through(inputs: Inputs, data: st.DataObject) -> None:
    """Whoever also recomputes the digest still gets a refusal, never a crash, for what is not a plan."""
    document = json.loads(to_json(assemble([plan_table(TableInput(*inputs, NOW_MS, TODAY))], created_at_ms=NOW_MS)))
    places = [place for place in _places(document)[1:] if place[0] not in ("digest", "format_version")]
    *above, last = data.draw(st.sampled_from(places))
    holder: Any = document
    for key in above:
        holder = holder[key]
    holder[last] = {"no": ["such", "thing"]}
    document["digest"] = digest_of(document)
    if {"totals", "policy"}.intersection((*above, last)) or last == "state":
        return  # counted and never read back, or for scripts: any keys will do
    with pytest.raises(Refused):
        from_json(json.dumps(document))


@given(
    st.one_of(
        st.text(max_size=200), st.recursive(st.none() | st.integers() | st.text(max_size=5), st.lists).map(json.dumps)
    )
)
def test_whatever_is_not_a_plan_is_refused(text: str) -> None:
    with pytest.raises(Refused) as refused:
        from_json(text)
    assert refused.value.code == "A402"
