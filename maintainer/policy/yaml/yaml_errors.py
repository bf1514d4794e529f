"""Turn a YAML parser's errors into findings that say what to write."""

from __future__ import annotations

import re

import yaml

from maintainer.policy.diagnostics.diagnostics import START_OF_FILE, Diagnostic, Severity, Span

_QUOTE_HELP = "put text with special characters in quotes"

# (pattern over context and problem, code, message, help); first match wins. `{0}` is the pattern's first group.
_TRANSLATIONS: tuple[tuple[re.Pattern[str], str, str, str], ...] = tuple(
    (re.compile(pattern), code, message, help)
    for pattern, code, message, help in (
        (r"found character '`' that cannot start", "Y120", "text cannot begin with a backtick unless it is quoted", ""),
        (r"found character '(.+)' that cannot start", "Y120", "text cannot begin with `{0}` unless it is quoted", ""),
        (r"while scanning an (?:alias|anchor)", "Y120", "text cannot begin with `*` or `&` unless it is quoted", ""),
        (r"while scanning a tag|tag handle", "Y120", "text cannot begin with `!` unless it is quoted", ""),
        (
            r"mapping values are not allowed",
            "Y121",
            "a second `: ` where a value stands",
            "put the value in quotes if it holds `: `; otherwise check the indentation of this line",
        ),
        (
            r"while scanning a quoted scalar; found unexpected (?:end of stream|document separator)",
            "Y107",
            "a quote that is never closed",
            "add the closing quote",
        ),
        (
            r"found unknown escape character|expected escape sequence|while scanning a double-quoted",
            "Y107",
            "an unknown escape in double quotes",
            "use single quotes, in which `\\` is an ordinary character",
        ),
        (
            r"while parsing a flow (?:sequence|mapping)",
            "Y107",
            "a bracket that is not closed, or a missing comma",
            "separate items with `,` and close with `]` or `}`",
        ),
        (r"while scanning a block scalar", "Y107", "a block text (`|` or `>`) that is not well formed", _QUOTE_HELP),
        (
            r"expected '<document start>'",
            "Y111",
            "text behind the end of the document",
            "one policy per file; remove `...`, or quote text that stands in column 1",
        ),
        (
            r"could not find expected ':'",
            "Y107",
            "a line that is neither `key: value` nor a list item",
            "write `key: value`, or put text over several lines in quotes",
        ),
        (
            r"expected <block end>|did not find expected key|unindent|indent",
            "Y107",
            "this line does not fit the indentation above it",
            "keys of one map start in one column; items of one list as well",
        ),
        (r"did not find expected|expected the node content", "Y107", "a value is missing here", _QUOTE_HELP),
    )
)

_AT_CONTEXT = re.compile(
    r"quoted scalar; found unexpected (?:end|document)|parsing a flow|an (?:alias|anchor)|could not find expected"
)
"""Where what was begun says more than the place at which the parser gave up."""

_STRAY = {
    "]": "a closing bracket that closes nothing",
    "}": "a closing bracket that closes nothing",
    ",": "a comma outside of brackets",
    "-": "a list item where a key is expected",
}


def syntax_diagnostic(error: yaml.YAMLError, text: str, file: str) -> Diagnostic:
    """Return the finding for a parser's error.

    A quote or bracket that stays open is shown where it was opened: where the parser gave up is the end of
    the file.
    """
    problem = _one_line(getattr(error, "problem", None) or str(error))
    whole = f"{_one_line(getattr(error, 'context', None) or '')}; {problem}"
    mark = getattr(error, "problem_mark", None)
    if mark is None or (_AT_CONTEXT.search(whole) and getattr(error, "context_mark", None) is not None):
        mark = getattr(error, "context_mark", None) or mark
    span = _span(mark, text)
    for pattern, code, message, help in _TRANSLATIONS:
        if match := pattern.search(whole):
            shown = message.format(*(group or "" for group in match.groups()))
            if "indentation" in shown:
                shown = _STRAY.get(_character_at(text, span), shown)
            return Diagnostic(code, Severity.ERROR, shown, file, span, help or _quoted_line(text, span))
    return Diagnostic("Y107", Severity.ERROR, f"not YAML: {problem[:120]}", file, span, _QUOTE_HELP)


def _span(mark: yaml.Mark | None, text: str) -> Span:
    """One character at the mark; a mark behind the last line is drawn to the end of it."""
    if mark is None:
        return START_OF_FILE
    lines = text.split("\n")
    line, column = mark.line, mark.column
    while line > 0 and (line >= len(lines) or not lines[line]):
        line -= 1
        column = max(len(lines[line]) - 1, 0) if line < len(lines) else 0
    return Span(line + 1, column + 1, line + 1, column + 2)


def _character_at(text: str, span: Span) -> str:
    line = text.split("\n")[span.line - 1]
    return line[span.column - 1 : span.column]


def _quoted_line(text: str, span: Span) -> str:
    """Propose the offending word in quotes: ``*.orders`` becomes ``"*.orders"``."""
    word = re.match(r"[^\s,\]}\"]+", text.split("\n")[span.line - 1][span.column - 1 :])
    return f'put it in quotes: `"{word[0][:60]}"`' if word else _QUOTE_HELP


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
