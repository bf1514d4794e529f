"""Hostile names and texts in everything that is written: each stays a text, and nothing else comes of it."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from tests.hostile.injected_outputs import NOW_MS, injected_findings, markdown_texts, report_pages, terminal_texts
from tests.hostile.injected_run import injected_history, injected_plan, injected_run, injected_status
from tests.hostile.injection_payloads import PAYLOADS
from tests.support.product import (
    LedgerRow,
    TableFinished,
    decode,
    event_line,
    from_json,
    history_csv,
    html,
    render_annotations,
    render_github,
    render_sarif,
    rows_of,
    run_findings,
    run_from_json,
    run_to_json,
    status_json,
    status_prometheus,
    to_json,
    visible_json,
)
from tests.support.product import encode_event as encode
from tests.support.product import render_findings_junit as validate_junit
from tests.support.product import render_run_junit as render_junit

PLAIN = "plain"
TEMPLATES = Path(html.__file__).parent / "templates"
OURS = {"style": "style.css", "script": "page.js"}


PARTS = tuple(PAYLOADS[first::8] for first in range(8))


def of_each_payload(test: Callable[[Sequence[str]], None]) -> Callable[[Sequence[str]], None]:
    """Ask a test once for each part of the payloads: `make test` has the first part, `make hostile` all."""
    parts = [pytest.param(PARTS[0], marks=pytest.mark.every_run), *PARTS[1:]]
    return pytest.mark.sampled(2)(pytest.mark.parametrize("payloads", parts, ids=range(len(parts)))(test))


def wrong(holds: Callable[[str], object], payloads: Sequence[str]) -> dict[str, str]:
    """Try payloads; return those for which an assertion fails, each with why."""
    failures = {}
    for payload in payloads:
        try:
            holds(payload)
        except (AssertionError, ValueError, SyntaxError, KeyError, UnicodeError) as error:
            failures[repr(payload)[:80]] = f"{type(error).__name__}: {str(error)[:300]}"
    return failures


def test_there_are_enough() -> None:
    assert len(PAYLOADS) >= 350
    assert len(PAYLOADS) * len([name for name in globals() if name.startswith("test_") and "stays" in name]) > 3400


class Dom(HTMLParser):
    """Elements with the names of their attributes.

    ``code`` without attributes, and the ``span`` that keeps such a sentence together, are left out: what stands in
    back-ticks is set as code, whoever wrote it.
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.open: list[bool] = []
        self.others: list[str] = []
        self.links: list[str | None] = []
        self.policies: list[str | None] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("code", "span"):
            self.open.append(bool(attrs))
        if attrs or tag not in ("code", "span"):
            self.elements.append((tag, tuple(name for name, _ in attrs)))
        values = dict(attrs)
        self.links += [values["href"]] if "href" in values else []
        self.policies += [values.get("content")] if "http-equiv" in values else []

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("code", "span") or self.open.pop():
            self.elements.append((f"/{tag}", ()))

    def handle_comment(self, data: str) -> None:
        self.others.append(data)

    def handle_pi(self, data: str) -> None:
        self.others.append(data)

    def unknown_decl(self, data: str) -> None:
        self.others.append(data)


@of_each_payload
def test_it_stays_a_text_in_html(payloads: Sequence[str]) -> None:
    """No element, attribute, comment or link beside those of a harmless text; only our style and script run."""
    expected = [Dom(page) for page in report_pages(PLAIN)]

    def holds(payload: str) -> None:
        for page, plain in zip(report_pages(payload), expected, strict=True):
            dom = Dom(page)
            assert dom.elements == plain.elements
            assert (dom.others, dom.links) == (plain.others, plain.links)
            hashes = []
            for kind in ("style", "script"):
                (text,) = re.findall(rf"<{kind}>(.*?)</{kind}>", page, re.DOTALL)
                assert text == (TEMPLATES / OURS[kind]).read_text()
                hashes.append(base64.b64encode(hashlib.sha256(text.encode()).digest()).decode())
            policy = f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; "
            assert dom.policies == [f"{policy}base-uri 'none'; form-action 'none'"]
            assert page.replace("\n", "").isprintable()

    assert wrong(holds, payloads) == {}


AUTOMATIC_LINK = re.compile(r"@[A-Za-z0-9]|://|www\.|(?<![&\w])#[0-9]|\bGH-[0-9]", re.IGNORECASE)


def _markdown_shape(text: str) -> list[str]:
    """Return the blocks, and which inline elements are beside text and code.

    No raw HTML but our own blocks. In what a reader takes for text there is nothing that a forge acts upon afterwards:
    it looks at texts between elements, whatever was escaped in the Markdown.
    """
    shape = []
    for token in MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text):
        if token.type == "html_block":
            assert re.fullmatch(r"(?:<!-- maintainer:plan -->|</?details>|<summary>.*</summary>|\s)+", token.content), (
                token
            )
        shape.append(token.type)
        for inline in token.children or ():
            if inline.type not in ("text", "text_special", "code_inline"):
                shape.append(f"  {inline.type}")
        texts = [inline.content if inline.type.startswith("text") else "\n" for inline in token.children or ()]
        match = AUTOMATIC_LINK.search("".join(texts))
        assert match is None, match
    return shape


@of_each_payload
def test_it_stays_a_text_in_markdown(payloads: Sequence[str]) -> None:
    """No tag, cell, link, emphasis or mention beside those of a harmless text."""
    expected = list(map(_markdown_shape, markdown_texts(PLAIN)))

    def holds(payload: str) -> None:
        for text, plain in zip(markdown_texts(payload), expected, strict=True):
            assert _markdown_shape(text) == plain
            assert text.replace("\n", "").isprintable()
            assert "&#" not in text or "&#" in payload

    assert wrong(holds, payloads) == {}


@of_each_payload
def test_it_stays_a_text_on_a_terminal(payloads: Sequence[str]) -> None:
    """No escape sequence, no control or invisible character, and no line that begins as the text wants it to."""

    def holds(payload: str) -> None:
        forged = re.split(r"[\r\n\x0b\x0c\x85\u2028\u2029]", payload)[1:]
        for name, text in terminal_texts(payload):
            hidden = [character for character in text if not character.isprintable() and character != "\n"]
            assert not hidden, (name, hidden[:3])
            lines = text.split("\n")
            if name != "junit":  # the text of an element has lines of its own
                started = [line for line in lines if any(part and line.startswith(part) for part in forged)]
                assert not started, (name, started[:2])
            if name != "annotations":
                commands = [line for line in lines if re.match(r"\s*::", line) or "##[" in line or "##vso[" in line]
                assert not commands, (name, commands[:2])

    assert wrong(holds, payloads) == {}


@of_each_payload
def test_it_stays_a_value_in_json(payloads: Sequence[str]) -> None:
    """Documents come back as they were, one line stays one line, and what is made visible is the same document."""

    def holds(payload: str) -> None:
        plan, outcome = injected_plan(payload), injected_run(payload)
        assert from_json(to_json(plan)) == plan
        assert run_from_json(run_to_json(outcome)) == outcome
        for text in (to_json(plan), run_to_json(outcome)):
            assert json.loads(visible_json(text)) == json.loads(text)
        for row in rows_of(plan, outcome):
            line = row.to_json()
            assert "\n" not in line
            assert LedgerRow.from_document(json.loads(line)) == row
        event = {"type": "note", "at_ms": 1, "table": payload, "reason": payload, "location": payload}
        line_bytes = encode(event)
        assert line_bytes.count(b"\n") == 1
        assert decode(line_bytes) == event
        for table in outcome.tables:
            line = event_line(TableFinished(NOW_MS, table))
            assert line.count("\n") == 1
            assert line.isascii()
            assert json.loads(line)["table"] == table.ref.identifier
        (status,) = json.loads(status_json(injected_status(payload), NOW_MS))["tables"]
        assert (status["table"], status["owner"]) == (payload, payload)
        (result,) = json.loads(render_sarif(injected_findings(payload)))["runs"][0]["results"]
        assert result["ruleId"] == "P201"

    assert wrong(holds, payloads) == {}


def _annotations(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """Parse workflow commands as GitHub's runner does: name, properties up to `::`, message to the end of the line."""
    commands = []
    for output in (render_annotations(run_findings(injected_run(text))), render_github(injected_findings(text))):
        for line in re.split(r"[\r\n]", output):
            match = re.fullmatch(r"::(\w+) ([^:]*)::(.*)", line)
            if match is None:
                assert "::" not in line, line
                assert "##[" not in line, line
                continue
            properties = [part.partition("=") for part in match[2].split(",")]
            assert all(re.fullmatch(r"(?:[^%]|%25|%0A|%0D|%3A|%2C)*", value) for _, _, value in properties), line
            commands.append((match[1], tuple(sorted(name for name, _, _ in properties if name != "line"))))
    return commands


@of_each_payload
def test_it_stays_a_message_in_annotations(payloads: Sequence[str]) -> None:
    expected = _annotations(PLAIN)
    assert len(expected) > 5

    def holds(payload: str) -> None:
        assert _annotations(payload) == expected

    assert wrong(holds, payloads) == {}


def _xml_shape(text: str) -> list[tuple[str, tuple[str, ...]]]:
    documents = (render_junit(injected_run(text)), validate_junit(injected_findings(text)))
    return [
        (element.tag, tuple(sorted(element.attrib)))
        for document in documents
        for element in ElementTree.fromstring(document.encode()).iter()
    ]


@of_each_payload
def test_it_stays_a_text_in_junit(payloads: Sequence[str]) -> None:
    expected = _xml_shape(PLAIN)

    def holds(payload: str) -> None:
        shape = _xml_shape(payload)
        # An empty text has no element of its own.
        assert shape == expected if payload.strip() else len(shape) <= len(expected)

    assert wrong(holds, payloads) == {}


@of_each_payload
def test_it_stays_a_cell_in_csv(payloads: Sequence[str]) -> None:
    def holds(payload: str) -> None:
        text = history_csv(injected_history(payload))
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
        assert [len(row) for row in rows] == [len(rows[0])] * 3
        for cell in (cell for row in rows[1:] for cell in row):
            assert not cell.lstrip().startswith(("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")), cell
            assert not cell.startswith(("\t", "\r")), cell

    assert wrong(holds, payloads) == {}


SAMPLE = re.compile(r'([a-z_]+)\{((?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)+)\} (-?[0-9.e+-]+)')
LABEL = re.compile(r'([a-z]+)="((?:[^"\\\n]|\\["\\n])*)"')


def _series(text: str) -> tuple[list[str], set[str]]:
    """Parse the exposition format strictly; return the samples without the text, and what the label `table` says."""
    samples_read, tables = [], set()
    for line in status_prometheus(injected_status(text), NOW_MS).rstrip("\n").split("\n"):
        if line.startswith("#"):
            assert re.fullmatch(r"# (?:HELP|TYPE) [a-z_]+ .+", line), line
            samples_read.append(line)
            continue
        match = SAMPLE.fullmatch(line)
        if match is None:
            assert re.fullmatch(r"[a-z_]+ [0-9.]+", line), line
            continue
        labels = {
            name: re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], raw)
            for name, raw in LABEL.findall(match[2])
        }
        tables.add(labels["table"])
        samples_read.append(f"{match[1]} {sorted(labels)} {labels.get('state')} {match[3]}")
    return samples_read, tables


@of_each_payload
def test_it_stays_a_label_in_prometheus(payloads: Sequence[str]) -> None:
    expected, tables = _series(PLAIN)
    assert (tables, len(expected) > 20) == ({PLAIN}, True)

    def holds(payload: str) -> None:
        samples_read, names = _series(payload)
        assert samples_read == expected
        (name,) = names
        shown = payload.replace("\n", "")
        assert name == payload or not shown.isprintable() or shown.lstrip().startswith("::") or "##" in shown

    assert wrong(holds, payloads) == {}
