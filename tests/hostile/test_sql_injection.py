"""Hostile names and values in statements: the parser reads the very name back, or it was refused before."""

from __future__ import annotations

import json
import os
import posixpath
import re
from pathlib import Path

import pytest

from tests.hostile.injection_payloads import PAYLOADS, SQL
from tests.support.product import (
    FORCED,
    PredicateError,
    TableRef,
    dotted,
    in_partitions,
    load_project,
    name_parts,
    optimize,
    parse_predicate,
    quote,
    reorg_purge,
    run,
    set_properties,
    table_name,
    table_of_path,
)

# Spark's lexer (SqlBaseLexer.g4), as far as a statement of ours may have anything of it.
TOKENS = re.compile(
    r"(?P<name>`(?:[^`]|``)*`)|(?P<text>'(?:[^'\\]|\\[\s\S])*')|(?P<comment>--|/\*)"
    r"|(?P<word>\w+)|(?P<sign>[(),.=])|(?P<blank> +)"
)
ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


def tokens(statement: str) -> list[tuple[str, str]]:
    """Read a statement as Spark does; what no token begins with is an error."""
    read, place = [], 0
    while place < len(statement):
        match = TOKENS.match(statement, place)
        assert match is not None, f"{statement[place : place + 20]!r} begins no token"
        kind = str(match.lastgroup)
        assert kind != "comment"
        if kind != "blank":
            read.append((kind, _value(kind, match[0])))
        place = match.end()
    return read


def _value(kind: str, token: str) -> str:
    if kind == "name":
        return token[1:-1].replace("``", "`")
    if kind == "text":
        return re.sub(r"\\(u[0-9a-fA-F]{4}|[0-3][0-7]{2}|[\s\S])", lambda match: _unescaped(match[1]), token[1:-1])
    return token


def _unescaped(escape: str) -> str:
    if escape[0] == "u" and len(escape) == 5:
        return chr(int(escape[1:], 16))
    if len(escape) == 3:
        return chr(int(escape, 8))
    return ESCAPES.get(escape, escape)


def test_there_are_enough() -> None:
    assert len(PAYLOADS) >= 350
    assert len(SQL) >= 80


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_every_statement_names_exactly_what_it_was_given(payload: str) -> None:
    where = in_partitions([((payload, payload), ("d", payload), (f"{payload}2", None))], {"d": "date"})
    by_path = table_of_path(payload)
    condition = [
        ("sign", "("), ("name", payload), ("sign", "="), ("text", payload), ("word", "AND"),
        ("name", "d"), ("sign", "="), ("word", "CAST"), ("sign", "("), ("text", payload), ("word", "AS"),
        ("word", "date"),
        ("sign", ")"), ("word", "AND"), ("name", f"{payload}2"), ("word", "IS"), ("word", "NULL"), ("sign", ")"),
    ]  # fmt: skip
    table = [("word", "delta"), ("sign", "."), ("name", payload)]
    assert tokens(optimize(by_path, where, (quote(payload), quote("b")))) == [
        ("word", "OPTIMIZE"), *table, ("word", "WHERE"), *condition, ("word", "ZORDER"), ("word", "BY"),
        ("sign", "("), ("name", payload), ("sign", ","), ("name", "b"), ("sign", ")"),
    ]  # fmt: skip
    assert tokens(reorg_purge(by_path, where)) == [
        ("word", "REORG"), ("word", "TABLE"), *table, ("word", "WHERE"), *condition,
        ("word", "APPLY"), ("sign", "("), ("word", "PURGE"), ("sign", ")"),
    ]  # fmt: skip
    assert tokens(set_properties(by_path, {payload: payload, "b": payload})) == [
        ("word", "ALTER"), ("word", "TABLE"), *table, ("word", "SET"), ("word", "TBLPROPERTIES"), ("sign", "("),
        ("text", payload), ("sign", "="), ("text", payload), ("sign", ","),
        ("text", "b"), ("sign", "="), ("text", payload), ("sign", ")"),
    ]  # fmt: skip
    assert name_parts(dotted((payload, "b", payload))) == [payload, "b", payload]
    ref = TableRef(f"{quote('s')}.{quote(payload)}")
    if not ref.is_path:
        assert tokens(table_name(ref)) == [("name", "s"), ("sign", "."), ("name", payload)]


def written_name(text: str) -> list[str] | None:
    """Read a table's name as Spark's grammar reads one, each part that needs no back-ticks as it stands."""
    parts, rest = [], text
    while True:
        match = re.match(r"`((?:[^`]|``)+)`|([^.`]+)", rest)
        if match is None:
            return None
        parts.append(match[1].replace("``", "`") if match[1] else match[2])
        rest = rest[match.end() :]
        if not rest:
            return parts
        if rest[0] != ".":
            return None
        rest = rest[1:]


def test_a_policys_table_is_named_exactly_or_refused(tmp_path: Path) -> None:
    """What two spellings name is decided by the policy; the statement must not decide again."""
    folder = tmp_path / "policies"
    folder.mkdir()
    refused = exact = 0
    wrong: dict[str, object] = {}
    for payload in PAYLOADS:
        try:
            json.dumps({"table": payload}, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            continue  # no file can hold it
        (folder / "t.yml").write_text(json.dumps({"version": 1, "table": payload}), encoding="utf-8")
        loaded = load_project(tmp_path, environ={})
        if loaded.errors:
            refused += 1
            continue
        (policy,) = [policy for policy in loaded.resolved() if not policy.is_ledger]
        read = tokens(table_name(policy.table))
        if policy.table.is_path:
            inner = re.fullmatch(r"delta\.`((?:[^`]|``)+)`", payload, re.IGNORECASE)
            path = inner[1].replace("``", "`") if inner else payload
            scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", path)
            expected = None if scheme else posixpath.normpath(os.path.join(tmp_path, path))
            if read[:2] != [("word", "delta"), ("sign", ".")] or len(read) != 3 or expected not in (None, read[2][1]):
                wrong[payload] = read
        else:
            names = [value for kind, value in read if kind == "name"]
            if names != written_name(payload) or len(read) != 2 * len(names) - 1:
                wrong[payload] = read
        exact += 1
    assert wrong == {}
    assert (refused > 100, exact > 100) == (True, True), (refused, exact)


MORE_PREDICATES = (
    "p = reflect('java.lang.System','exit',1)", "reflect('java.lang.System','exit',1) = 1",
    "p = java_method('a','b')", "p = my_udf('x')",
    "p = (SELECT 1)", "p IN (SELECT a FROM b)", "EXISTS (SELECT 1)", "1=1", "1=1) --", "p = 'x' --",
    "p = 'x' /* y */", "p = 'x'; DROP TABLE t",
    "p = 'x' UNION SELECT 1", "p = `q`", "p = \"x\"", "p LIKE '%'", "p RLIKE 'x'", "p = 'x' OR true",
    "p = concat('a', 'b')", "p = 1 + 1",
    "p = CAST('x' AS STRING)", "p = current_user()", "p = rand()", "p[0] = 1", "p.q = 1",
    "CASE WHEN p = 1 THEN 1 END", "p = X'41'", "p = r'x'",
    "p = $1", "p = :x", "p = ?", "p = {x}", "p -> q", "p = 'x' COLLATE UTF8", "p = DATE_SUB(current_date(), 1)",
    "(p = 'x'", "p = 'x')", "NOT",
    "p = '" + "x" * 100_000, "(" * 5000 + "p = 1" + ")" * 5000, "NOT " * 5000 + "p = 1",
    " OR ".join(["p = 1"] * 20_000), "p IN (" + "1," * 50_000 + "1)",
)  # fmt: skip


@pytest.mark.parametrize("payload", [*SQL, *MORE_PREDICATES], ids=range(len(SQL) + len(MORE_PREDICATES)))
def test_no_code_passes_for_a_predicate(payload: str) -> None:
    """Its grammar knows columns, literals and comparisons; a call, a query or a comment is refused with its place."""
    with pytest.raises(PredicateError) as caught:
        parse_predicate(payload)
    assert 0 <= caught.value.offset <= len(payload)
    assert caught.value.help
    assert "\n" not in caught.value.message


def test_code_in_a_policys_predicate_ends_before_spark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "policies"
    folder.mkdir()
    for number, payload in enumerate(MORE_PREDICATES):
        policy = {"version": 1, "table": f"s.t{number}", "optimize": {"where": payload}}
        (folder / f"t{number}.yml").write_text(json.dumps(policy), encoding="utf-8")
    assert run(["--project", str(tmp_path), "apply", "--yes"]) == 2
    shown = capsys.readouterr().err
    named = set(re.findall(r"--> policies/(t[0-9]+)\.yml:1:[0-9]+", shown))
    assert named == {f"t{number}" for number in range(len(MORE_PREDICATES))}


def test_spark_puts_no_variable_into_a_statement() -> None:
    """`${env:HOME}` in a name is text only where the session does not replace it; see the contract test."""
    assert FORCED["spark.sql.variable.substitute"] == "false"
    assert FORCED["spark.sql.parser.escapedStringLiterals"] == "false"
