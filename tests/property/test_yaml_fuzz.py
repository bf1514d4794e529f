"""No input whatever gives a traceback, and both of PyYAML's parsers lead to the same result."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maintainer.policy.diagnostics import Diagnostic
from maintainer.policy.policy_checks import check_file
from maintainer.policy.schema.schema_keys import key_names
from maintainer.policy.yaml.yaml_document import YamlDocument
from maintainer.policy.yaml.yaml_reader import PARSER, PURE_PARSER, read_text
from tests.support.suites.example_counts import examples

ROOT = Path(__file__).parents[2]
POLICIES = [path.read_bytes() for path in sorted((ROOT / "policies").rglob("*.yml"))] + [
    (Path(__file__).parents[1] / "support" / "policies" / "every_key.yml").read_bytes()
]
FRAGMENTS = [
    *(b"&a ", b"*a", b"<<: ", b"!!str ", b"---\n", b"...\n", b"\t", b"\r\n", b"\xef\xbb\xbf", b"\x00", b"\xff", b": "),
    *(b"? ", b"[", b"]", b"{", b"}", b"'", b'"', b"#", b"|\n", b">", b"%YAML 1.1\n", b"null", b"~", b"010", b"1e999"),
    *(
        b".nan",
        b"9" * 400,
        b"\xc2\x85",
        b"\xe2\x80\xa8",
        b"\n\n",
        b"  ",
        b"@",
        b"`",
        b"${env:X}",
        b"64MB",
        b"7",
        b"yes",
    ),
    *(b"- ", b"- - - -", b"\xf0\x9f\x98\x80", b"\xe4\xb8\xad", b"64 MiB", b"-1", b"1.5"),
]


def check(content: str | bytes, file: str = "policies/t.yml") -> tuple[YamlDocument | None, list[Diagnostic]]:
    """Read and check as `validate` does, and hold what must be true of every outcome."""
    document, findings = read_text(content, file)
    assert document is not None or findings, "neither a document nor a reason"
    if document is not None:
        lines = document.text.split("\n")
        findings = [*findings, *check_file(document)]
        for finding in findings:
            assert 1 <= finding.span.line <= len(lines)
            assert 1 <= finding.span.column <= len(lines[finding.span.line - 1]) + 1
    for finding in findings:
        assert finding.file == file
        assert (finding.span.end_line, finding.span.end_column) >= (finding.span.line, finding.span.column)
        assert finding.message.isprintable(), finding
        assert len(finding.message) < 400
    return document, findings


def mutate(source: bytes, rng: random.Random) -> bytes:
    """Damage a real policy a few times: cut, repeat, swap, insert."""
    content = source
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(content) + 1)
        end = min(len(content), at + rng.choice([1, 1, 2, 5, 30]))
        match rng.randrange(5):
            case 0:
                content = content[:at] + content[end:]
            case 1:
                content = content[:at] + rng.choice(FRAGMENTS) + content[at:]
            case 2:
                content = content[:at] + rng.choice(FRAGMENTS) + content[end:]
            case 3:
                content = content[:end] + content[at:]
            case _:
                content = content[:at] + bytes([rng.randrange(256)]) + content[end:]
    return content


@pytest.mark.parametrize("seed", range(8))
def test_mutated_policies_never_raise(seed: int) -> None:
    rng = random.Random(seed)
    refused = 0
    for _ in range(400):
        content = mutate(rng.choice(POLICIES), rng)
        check(content, "maintainer.yml")
        _, findings = check(content)
        refused += any(finding.is_error for finding in findings)
    # The mutations do damage; and not every file is beyond repair.
    assert 100 < refused < 400


@pytest.mark.parametrize("seed", range(3))
def test_both_parsers_lead_to_the_same(seed: int) -> None:
    rng = random.Random(1000 + seed)
    for _ in range(120):
        content = mutate(rng.choice(POLICIES), rng)
        assert read_text(content, "t.yml", PURE_PARSER) == read_text(content, "t.yml", PARSER), content


def test_unmutated_policies_have_equal_marks_from_both_parsers() -> None:
    for content in POLICIES:
        fast, pure = read_text(content, "t.yml", PARSER)[0], read_text(content, "t.yml", PURE_PARSER)[0]
        assert fast is not None
        assert pure is not None
        assert fast.marks == pure.marks


@settings(max_examples=examples(500), deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes(content: bytes) -> None:
    check(content)


@settings(max_examples=examples(800), deadline=None)
@given(
    st.lists(
        st.sampled_from([*FRAGMENTS, b"version: 1\n", b"table: a.b\n", b"optimize:\n", b"a", b"tags"]), max_size=25
    )
)
def test_any_row_of_fragments(parts: list[bytes]) -> None:
    check(b"".join(parts))


KEYS = sorted({part for name in key_names() for part in name.split(".")} | {"x", "", "on", "1", "a.b", "delta.x"})
SCALARS = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        8,
        2**63 - 1,
        0.5,
        -0.0,
        1e300,
        "",
        " ",
        "x",
        "é\n",
        "7d",
        "2d",
        "64MiB",
        "128MB",
        "22:00",
    ),
    *(
        "full",
        "incremental",
        "lite",
        "off",
        "a.b",
        "*.b",
        "day = 1",
        "day = f(1)",
        "2026-02-30",
        "Europe/Berlin",
        "Mars",
    ),
    *("expect_column_to_exist", "unexpected_rows_expectation", "mon", "${env:X}", "20%", "A", "a", "interval 1 month"),
]


def invent(rng: random.Random, depth: int) -> object:
    """Make up a value of any shape, with keys that a policy knows."""
    shape = rng.random()
    if depth == 0 or shape < 0.4:
        return rng.choice(SCALARS)
    if shape < 0.6:
        return [invent(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {rng.choice(KEYS): invent(rng, depth - 1) for _ in range(rng.randrange(7))}


@pytest.mark.parametrize("seed", range(4))
def test_any_data_under_known_keys(seed: int) -> None:
    rng = random.Random(2000 + seed)
    for _ in range(150):
        data = {rng.choice(KEYS): invent(rng, 4) for _ in range(8)}
        # JSON with ASCII only is YAML.
        for file in ("policies/t.yml", "policies/_profiles/t.yml", "maintainer.yml"):
            check(json.dumps(data), file)


@pytest.mark.parametrize("parser", [PURE_PARSER, PARSER])
def test_a_question_mark_in_plain_text_between_brackets_is_text(parser: type) -> None:
    """YAML 1.2 allows it; PyYAML's own parser ended the text there and asked for a comma."""
    document, findings = read_text(b"a: [s3://x?y, b? c]\nd: {e: f?}\n", "t.yml", parser)
    assert findings == []
    assert document is not None
    assert document.data == {"a": ["s3://x?y", "b? c"], "d": {"e": "f?"}}
