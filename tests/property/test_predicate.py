"""Laws of partition predicates, with SQLite as an oracle that shares no code with ours."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maintainer.policy.predicate.partition_predicate import parse_predicate
from maintainer.policy.predicate.predicate_grammar import PredicateError
from tests.support.suites.example_counts import examples

TYPES = {"region": "string", "n": "integer", "flag": "boolean", "price": "decimal(10,2)", "order day": "date"}
TODAY = date(2026, 11, 21)

texts = st.sampled_from(["", "a", "b", "é", "a'b", "Z", "zz", "\U0001f600", "\uffee"])
integers = st.integers(min_value=-3, max_value=3)
days = st.sampled_from(["2025-12-31", "2026-01-01", "2026-01-31", "2026-02-01"])
# Quarters are exact in SQLite's binary numbers, so the oracle rounds nothing.
prices = st.sampled_from(["-1.25", "0.00", "0.5", "0.75", "10.00"])


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


LITERALS = {
    "region": texts.map(quoted),
    "n": integers.map(str),
    "flag": st.sampled_from(["TRUE", "FALSE", "true"]),
    "price": prices,
    "`order day`": days.map(quoted),
}


@st.composite
def leaves(draw: st.DrawFn) -> str:
    column = draw(st.sampled_from(sorted(LITERALS)))
    literal = LITERALS[column]
    negation = draw(st.sampled_from(["", "NOT ", "not "]))
    shape = draw(st.sampled_from(["compare", "flipped", "in", "between", "null"]))
    operator = draw(st.sampled_from(["=", "==", "!=", "<>", "<", "<=", ">", ">="]))
    if shape == "compare":
        return f"{column} {operator} {draw(literal)}"
    if shape == "flipped":
        return f"{draw(literal)} {operator} {column}"
    if shape == "in":
        return f"{column} {negation}IN ({', '.join(draw(st.lists(literal, min_size=1, max_size=3)))})"
    if shape == "between":
        return f"{column} {negation}between {draw(literal)} and {draw(literal)}"
    return f"{column} IS {negation}NULL"


def joined(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(children, st.sampled_from(["AND", "OR", "and", "or"]), children).map(" ".join),
        children.map(lambda text: f"({text})"),
        children.map(lambda text: f"NOT ({text})"),
        children.map(lambda text: f"NOT {text}"),
    )


predicates = st.recursive(leaves(), joined, max_leaves=8)
partitions = st.fixed_dictionaries(
    {
        "region": st.none() | texts,
        "n": st.none() | integers.map(str),
        "flag": st.none() | st.sampled_from(["true", "false"]),
        "price": st.none() | prices,
        "order day": st.none() | days,
    }
)


def sqlite_selects(text: str, values: Mapping[str, str | None]) -> bool:
    """Ask SQLite: text compares by UTF-8 bytes there, numbers by value, and unknown does not select."""
    row = (
        values["region"] or None,  # in the log an empty string is a null
        None if values["n"] is None else int(values["n"]),
        None if values["flag"] is None else values["flag"] == "true",
        None if values["price"] is None else float(values["price"]),
        values["order day"],
    )
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE t (region TEXT, n INTEGER, flag INTEGER, price REAL, `order day` TEXT)")
        connection.execute("INSERT INTO t VALUES (?, ?, ?, ?, ?)", row)
        (count,) = connection.execute(f"SELECT count(*) FROM t WHERE {text}").fetchone()
    connection.close()
    return bool(count)


@settings(max_examples=examples(500), deadline=None)
@given(text=predicates, values=partitions)
def test_a_predicate_selects_what_sqlite_selects(text: str, values: dict[str, str | None]) -> None:
    assert parse_predicate(text).bind(TYPES, TODAY)(values) == sqlite_selects(text, values)


@settings(max_examples=examples(500), deadline=None)
@given(text=predicates, values=partitions)
def test_the_canonical_text_reads_back_as_the_same_predicate(text: str, values: dict[str, str | None]) -> None:
    predicate = parse_predicate(text)
    again = parse_predicate(predicate.text)
    assert again == predicate
    assert again.text == predicate.text
    assert sqlite_selects(predicate.text, values) == sqlite_selects(text, values)


ALPHABET = "abn`'\"()<>=!,;-+/*.0159 \n\t\\%é" + "\x00"
SCRAPS = [
    "AND",
    "OR",
    "NOT",
    "IN",
    "IS",
    "NULL",
    "n",
    "DATE",
    "'2026-01-01'",
    "current_date()",
    "BETWEEN",
    "region",
    "1",
]
rubbish = st.one_of(
    st.text(alphabet=ALPHABET, max_size=60),
    st.lists(st.sampled_from(SCRAPS) | st.text(alphabet=ALPHABET, max_size=4), max_size=12).map(" ".join),
)


@settings(max_examples=examples(1000), deadline=None)
@given(text=rubbish)
def test_any_text_is_read_or_refused_with_a_place_inside_it(text: str) -> None:
    try:
        parse_predicate(text)
    except PredicateError as error:
        complaint = error
    else:
        return
    assert 0 <= complaint.offset <= len(text)
    assert complaint.length >= 1
    assert complaint.message
    assert complaint.help


@settings(max_examples=examples(500), deadline=None)
@given(text=predicates, scrap=st.sampled_from(["(", ")", ";", "--", "/*", "1=1"]))
def test_a_damaged_predicate_is_refused(text: str, scrap: str) -> None:
    """A scrap that belongs nowhere, put outside quotes, is never read as something else."""
    with pytest.raises(PredicateError):
        parse_predicate(f"{text} {scrap}")
    with pytest.raises(PredicateError):
        parse_predicate(f"1=1) OR ({text}")
