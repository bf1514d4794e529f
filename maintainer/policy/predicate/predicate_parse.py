"""Read a partition predicate, with a good message for all that is not in its grammar.

The text comes from a reviewed file and yet is never handed to an engine as SQL. What is not listed here
does not exist: no function but ``current_date()``, no subquery, no comment, no arithmetic but days on
``current_date()``.

    or         := and (OR and)*
    and        := not (AND not)*
    not        := NOT not | ( or ) | leaf
    leaf       := column operator value | value operator column | column [NOT] IN ( value, ... )
                | column [NOT] BETWEEN value AND value | column IS [NOT] NULL
    operator   := = | == | != | <> | < | <= | > | >=
    value      := 'text' | [-]digits[.digits] | TRUE | FALSE | DATE 'yyyy-mm-dd' | TIMESTAMP '...'
                | current_date() [(+|-) days],  days := digits | INTERVAL digits DAY[S]
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import NoReturn

from maintainer.policy.predicate.predicate_grammar import (
    ALLOWED,
    RESERVED,
    Comparison,
    Conjunction,
    CurrentDate,
    Disjunction,
    Literal,
    Membership,
    Negation,
    Node,
    NullCheck,
    PredicateError,
    Range,
    Token,
    Value,
    names_zone,
    read_date,
    read_timestamp,
    tokens_of,
    unquoted,
)

MAX_DEPTH = 32
"""Parentheses and NOTs inside one another; keeps the recursion of every reader small."""

MAX_DIGITS = 38
"""Digits of a number, as in Spark's widest decimal."""

MAX_DAYS = 36_525
"""Days that ``current_date()`` may be moved: a hundred years."""

_FLIPPED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

_UNKNOWN_WORDS = {
    "LIKE": "LIKE is not part of the grammar; a range of text such as `d >= '2026' AND d < '2027'` often is the same",
    "RLIKE": "regular expressions are not part of the grammar",
    "EXISTS": "subqueries are not part of the grammar",
    "SELECT": "subqueries are not part of the grammar",
    "CASE": "CASE is not part of the grammar; write the cases with AND and OR",
    "CAST": "casts are not part of the grammar; a literal is read by the type of its column",
}


def parse_node(text: str) -> Node:
    """Read a predicate into its tree.

    Args:
        text: At most 8,192 characters.

    Raises:
        PredicateError: The text is not in the grammar or exceeds a limit.
    """
    parser = _Parser(list(tokens_of(text)))
    node = parser.disjunction(depth=0)
    parser.expect_end()
    return node


class _Parser:
    """Recursive descent over the tokens; depth is bounded by ``MAX_DEPTH``."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._position = 0

    # -- the tree ---------------------------------------------------------------------------------------

    def disjunction(self, depth: int) -> Node:
        return self._joined("OR", Disjunction, lambda: self._joined("AND", Conjunction, lambda: self._negation(depth)))

    def _joined(self, word: str, kind: type[Conjunction] | type[Disjunction], term: Callable[[], Node]) -> Node:
        """Terms of the same kind are one: ``a AND (b AND c)`` is ``a AND b AND c``."""
        terms = [term()]
        while self._take(word):
            terms.append(term())
        flat = (inner for one in terms for inner in (one.terms if isinstance(one, kind) else (one,)))
        return terms[0] if len(terms) == 1 else kind(tuple(flat))

    def _negation(self, depth: int) -> Node:
        token = self._peek
        if depth > MAX_DEPTH:
            self._fail("the predicate is nested too deeply", token, f"at most {MAX_DEPTH} levels are read")
        if self._take("NOT"):
            return Negation(self._negation(depth + 1))
        if self._take("("):
            node = self.disjunction(depth + 1)
            self._expect_mark(")", "this parenthesis is not closed", token)
            return node
        return self._leaf()

    def _leaf(self) -> Node:
        token = self._peek
        if self._starts_value(token):
            value = self._value()
            operator = self._operator()
            if self._starts_value(self._peek):
                self._fail("a value is compared with a value", self._peek, "compare a column with a value")
            return Comparison(self._column(), _FLIPPED[operator], value)
        column = self._column()
        negated = self._take("NOT")
        if self._take("IN"):
            return Membership(column, self._value_list(), negated)
        if self._take("BETWEEN"):
            low = self._value()
            self._expect("AND", "BETWEEN is written `column BETWEEN low AND high`")
            return Range(column, low, self._value(), negated)
        if negated:
            self._fail("NOT here must be followed by IN or BETWEEN", self._peek, "negate a condition as `NOT (...)`")
        if self._take("IS"):
            negated = self._take("NOT")
            self._expect("NULL", "IS is written `column IS NULL` or `column IS NOT NULL`")
            return NullCheck(column, negated)
        operator = self._operator()
        if not self._starts_value(self._peek):
            self._not_a_value()
        return Comparison(column, operator, self._value())

    # -- leaves -----------------------------------------------------------------------------------------

    def _column(self) -> str:
        token = self._next()
        if token.kind == "quoted":
            return token.text[1:-1].replace("``", "`")
        if token.kind != "word" or token.upper in RESERVED:
            what = f"`{token.text}`" if token.text else "nothing"
            self._fail(f"a column is expected here, not {what}", token, f"allowed: {ALLOWED}")
        self._refuse_unknown(token, self._peek)
        return token.text

    def _operator(self) -> str:
        token = self._next()
        if token.kind == "operator" and token.text != "<=>":
            return {"==": "=", "<>": "!="}.get(token.text, token.text)
        help = f"after a column: = != < <= > >= IN BETWEEN IS NULL; allowed in all: {ALLOWED}"
        if token.upper in _UNKNOWN_WORDS:
            self._fail(_UNKNOWN_WORDS[token.upper], token, help)
        if token.text in ("AND", "OR", ")") or token.kind == "end":
            self._fail("a column alone is not a condition", token, "write a comparison, as in `flag = TRUE`")
        self._fail(f"an operator is expected here, not `{token.text}`", token, help)

    def _value_list(self) -> tuple[Value, ...]:
        opening = self._peek
        self._expect_mark("(", "IN is written `column IN (value, value)`", opening)
        if self._peek.upper == "SELECT":
            self._fail(_UNKNOWN_WORDS["SELECT"], self._peek, "list the values")
        values = [self._value()]
        while self._take(","):
            values.append(self._value())
        self._expect_mark(")", "this list is not closed", opening)
        return tuple(values)

    def _starts_value(self, token: Token) -> bool:
        if token.kind in ("text", "number") or token.text in ("-", "+") or token.upper in ("TRUE", "FALSE"):
            return True
        if token.upper in ("DATE", "TIMESTAMP"):
            return self._following.kind == "text"
        return token.upper == "CURRENT_DATE" and self._following.text == "("

    def _value(self) -> Value:
        token = self._peek
        if not self._starts_value(token):
            self._not_a_value()
        self._next()
        if token.kind == "text":
            return Literal(unquoted(token))
        if token.kind == "number" or token.text in ("-", "+"):
            return self._number(token)
        if token.upper in ("TRUE", "FALSE"):
            return Literal(token.upper == "TRUE")
        if token.upper == "CURRENT_DATE":
            return self._current_date(token)
        literal = self._next()
        if token.upper == "DATE":
            day = read_date(unquoted(literal))
            if day is None:
                self._fail(f"{literal.text} is not a date", literal, "write DATE 'yyyy-mm-dd'")
            return Literal(day)
        moment = read_timestamp(unquoted(literal))
        if moment is None:
            self._fail(f"{literal.text} is not a time", literal, "write TIMESTAMP 'yyyy-mm-dd hh:mm:ss', in UTC")
        return Literal(moment if names_zone(unquoted(literal)) else moment.replace(tzinfo=None))

    def _number(self, token: Token) -> Literal:
        sign = -1 if token.text == "-" else 1
        digits = token if token.kind == "number" else self._next()
        if digits.kind != "number":
            self._fail("a number is expected here", digits, "arithmetic is allowed on current_date() only")
        if len(digits.text.replace(".", "")) > MAX_DIGITS:
            self._fail("this number is too long", digits, f"at most {MAX_DIGITS} digits are read")
        number = Decimal(digits.text)
        return Literal(number.copy_sign(sign) if number else number)

    def _current_date(self, token: Token) -> CurrentDate:
        self._expect_mark("(", "the day is written current_date()", token)
        self._expect_mark(")", "current_date() takes no argument", token)
        sign = self._peek
        if sign.text not in ("+", "-"):
            return CurrentDate()
        self._next()
        interval = self._take("INTERVAL")
        amount = self._next()
        digits = unquoted(amount) if interval and amount.kind == "text" else amount.text
        if not re.fullmatch(r"[0-9]{1,6}", digits):
            self._fail("current_date() is moved by whole days", amount, "write `current_date() - 7`")
        if interval and self._next().upper not in ("DAY", "DAYS"):
            self._fail("intervals are counted in days", self._tokens[self._position - 1], "write INTERVAL 7 DAYS")
        if not interval and self._peek.upper in ("DAY", "DAYS"):
            self._fail("days are counted without the word", self._peek, f"write `current_date() {sign.text} {digits}`")
        if int(digits) > MAX_DAYS:
            self._fail(f"{digits} days are too many", amount, f"at most {MAX_DAYS} are allowed")
        return CurrentDate(int(digits) if sign.text == "+" else -int(digits))

    def _not_a_value(self) -> NoReturn:
        token = self._peek
        if token.upper == "NULL":
            self._fail("nothing compares with NULL", token, "write `column IS NULL` or `column IS NOT NULL`")
        if token.upper == "CURRENT_DATE":
            self._fail("current_date needs parentheses", token, "write current_date()")
        self._refuse_unknown(token, self._following)
        if token.kind in ("word", "quoted"):
            self._fail(
                f"a value is expected here, not the column {token.text}", token, "text must be in single quotes: 'text'"
            )
        what = f"`{token.text}`" if token.text else "the end"
        self._fail(f"a value is expected here, not {what}", token, "a value is 'text', a number, DATE '...', TRUE")

    def _refuse_unknown(self, token: Token, following: Token) -> None:
        """Refuse words of SQL that are not part of the grammar, and functions."""
        if token.upper in _UNKNOWN_WORDS:
            self._fail(_UNKNOWN_WORDS[token.upper], token, f"allowed: {ALLOWED}")
        if token.kind == "word" and following.text == "(":
            self._fail(f"`{token.text}(...)`: functions are not part of the grammar", token, "only current_date() is")

    # -- tokens -----------------------------------------------------------------------------------------

    @property
    def _peek(self) -> Token:
        return self._tokens[self._position]

    @property
    def _following(self) -> Token:
        return self._tokens[min(self._position + 1, len(self._tokens) - 1)]

    def _next(self) -> Token:
        token = self._tokens[self._position]
        if token.kind != "end":
            self._position += 1
        return token

    def _take(self, word: str) -> bool:
        is_next = self._peek.upper == word
        if is_next:
            self._next()
        return is_next

    def _expect(self, word: str, message: str) -> None:
        if not self._take(word):
            self._fail(message, self._peek, f"{word} is expected here")

    def _expect_mark(self, mark: str, message: str, blame: Token) -> None:
        if not self._take(mark):
            self._fail(message, blame, f"`{mark}` is expected before {self._peek.text or 'the end'}")

    def expect_end(self) -> None:
        """Refuse whatever follows a complete predicate."""
        token = self._peek
        if token.kind == "end":
            return
        if token.text == ")":
            self._fail("this parenthesis closes nothing", token, "remove it, or open one before")
        self._fail(f"`{token.text}` does not belong here", token, f"allowed: {ALLOWED}")

    @staticmethod
    def _fail(message: str, token: Token, help: str) -> NoReturn:
        raise PredicateError(message, token.offset, len(token.text), help)
