"""Each reason to leave a table alone has words of its own, as ``docs/reasons.md`` has a section for it."""

from __future__ import annotations

import re
from pathlib import Path

from maintainer.model.plan.reasons import ReasonCode
from maintainer.policy.resolve.resolved import policy_values
from maintainer.report.plan.step_text import reason_words
from tests.support.tables.builders import make_policy

PAGE = (Path(__file__).parents[4] / "docs" / "reasons.md").read_text(encoding="utf-8")
WORDS = {code.value: said.words for code, said in reason_words().items() if said.words}


def test_what_is_left_alone_has_words_and_nothing_else_has() -> None:
    _, _, left_alone = PAGE.partition("## Why files or partitions are left alone")
    assert left_alone
    sections = set(re.findall(r"^### (\w+)$", left_alone, re.MULTILINE))
    assert set(WORDS) == sections
    assert set(reason_words()) == set(ReasonCode)


def test_no_two_reasons_read_the_same() -> None:
    assert len(set(WORDS.values())) == len(WORDS)
    assert [words for words in WORDS.values() if "_" in words or words.endswith(".")] == []


def test_an_answer_names_only_settings_that_every_policy_has() -> None:
    named = {key for said in reason_words().values() for key in re.findall(r"\{(.*?)\}", said.change)}
    assert named
    assert named <= {*dict(policy_values(make_policy())), "there", "partitions"}
