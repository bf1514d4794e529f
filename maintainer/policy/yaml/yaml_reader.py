"""Read one YAML file strictly, as YAML 1.2 core, with the place of every key and value.

The data is composed from PyYAML's *events*, never by one of its constructors: no tag can create an object, an alias
is seen before it could multiply anything, and the depth is bounded. What YAML 1.1 reads as a surprise is text (`yes`,
`22:00`, `2024-01-01`) or an error (`010`, `0x1F`, `.nan`). libyaml is used where PyYAML has it; the pure parser gives
the same data and the same places. A parser's errors become findings that say what to write.
"""

from __future__ import annotations

import codecs
import os
import re
import stat
from itertools import islice
from pathlib import Path

import yaml

from maintainer.errors import unread
from maintainer.errors.foreign_text import first_secret
from maintainer.policy.diagnostics import START_OF_FILE, Diagnostic, Severity, SourceSpan
from maintainer.policy.yaml.discovery import PROFILE_FOLDER, PROJECT_FILE
from maintainer.policy.yaml.yaml_composer import Composer
from maintainer.policy.yaml.yaml_document import FORBIDDEN, YamlDocument, odd_space, refused_character

_QUOTE_HELP = "put text with special characters in quotes"

# (pattern over context and problem, code, message, help); first match wins. `{0}` is the pattern's first group.
_TRANSLATIONS = (
    (r"found character '`' that cannot start", "Y120", "text cannot begin with a backtick unless it is quoted", ""),
    (r"found character '(.+)' that cannot start", "Y120", "text cannot begin with `{0}` unless it is quoted", ""),
    (r"while scanning an (?:alias|anchor)", "Y120", "text cannot begin with `*` or `&` unless it is quoted", ""),
    (r"while scanning a tag|tag handle", "Y120", "text cannot begin with `!` unless it is quoted", ""),
    (
        r"mapping values are not allowed",
        "Y121",
        "a second `: ` in a value",
        "put the value in quotes if it contains `: `; otherwise check the indentation of this line",
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
        "one policy per file; remove `...`, or quote text that begins in column 1",
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
    if (space := odd_space(text.split("\n")[span.line - 1])) is not None:
        return Diagnostic(space.code, Severity.ERROR, space.message, file, span, space.help)
    for pattern, code, message, help in _TRANSLATIONS:
        if match := re.search(pattern, whole):
            shown = message.format(*(group or "" for group in match.groups()))
            if "indentation" in shown:
                shown = _STRAY.get(text.split("\n")[span.line - 1][span.column - 1 : span.column], shown)
            return Diagnostic(code, Severity.ERROR, shown, file, span, help or _quoted_line(text, span))
    return Diagnostic("Y107", Severity.ERROR, f"not YAML: {problem[:120]}", file, span, _QUOTE_HELP)


def _span(mark: yaml.Mark | None, text: str) -> SourceSpan:
    """One character at the mark; a mark behind the last line is drawn to the end of it."""
    if mark is None:
        return START_OF_FILE
    lines = text.split("\n")
    line, column = mark.line, mark.column
    while line > 0 and (line >= len(lines) or not lines[line]):
        line -= 1
        column = max(len(lines[line]) - 1, 0) if line < len(lines) else 0
    return SourceSpan(line + 1, column + 1, line + 1, column + 2)


def _quoted_line(text: str, span: SourceSpan) -> str:
    """Propose the offending word in quotes: ``*.orders`` becomes ``"*.orders"``, the key ``*:`` is ``"*":``."""
    word = re.match(r"([^\s,\]}\"]+?)(:?)(?=[\s,\]}\"]|$)", text.split("\n")[span.line - 1][span.column - 1 :])
    return f'put it in quotes: `"{word[1][:60]}"{word[2]}`' if word else _QUOTE_HELP


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


MAX_FILE_BYTES = 256 * 1024


class _PurePythonLoader(yaml.Loader):
    """PyYAML's own parser, with the one rule of plain text in which it differs from libyaml put right.

    YAML 1.2 allows ``?`` inside plain text between brackets (``[s3://a?b]``); PyYAML ends the text there.
    """

    _in_plain = False

    def scan_plain(self) -> yaml.ScalarToken:
        self._in_plain = True
        try:
            return super().scan_plain()
        finally:
            self._in_plain = False

    def peek(self, index: int = 0) -> str:
        character = str(super().peek(index))
        # Looked at to decide whether the text goes on; the text itself is taken from the buffer.
        return "x" if self._in_plain and character == "?" else character


PURE_PARSER = _PurePythonLoader
"""The parser written in Python; also the one whose messages are translated, whichever parser failed."""

PARSER = getattr(yaml, "CLoader", PURE_PARSER)
"""libyaml's parser where it is there. Only its events are used; no constructor of either class ever runs."""

# A tab is allowed where only a comment can be.
_TAB = re.compile(r"^(?:[^\t#\n]|(?<!\s)(?<!^)#)*\t", re.MULTILINE)
_OPENING_MARKER, _CLOSING_MARKER = re.compile(r"^<{7} \S", re.MULTILINE), re.compile(r"^>{7} \S", re.MULTILINE)
_ANY_MARKER = re.compile(r"(?:<{7}|\|{7}|>{7}) \S|={7}$")
_DIRECTIVE = re.compile(r"(?:[ \n]|#[^\n]*\n)*(?<![^\n])%")


def read_document(path: Path, root: Path) -> tuple[YamlDocument | None, list[Diagnostic]]:
    """Read the file at ``path``, which must be a regular file inside ``root`` and not behind a link.

    Returns:
        The document (None if there is nothing to check further) and all findings of reading it, sorted. A
        document may come with errors: what was refused is left out of it (`Document.unreadable`). Never raises
        for what the file holds or is.
    """
    file = display_path(path, root)
    content = read_bytes(path, root)
    return (None, [content]) if isinstance(content, Diagnostic) else read_text(content, file)


def display_path(path: Path, root: Path) -> str:
    """Return the posix path that messages show: relative to ``root`` where it is inside."""
    try:
        return path.relative_to(root).as_posix()
    except ValueError:
        return path.as_posix()


def read_bytes(path: Path, root: Path) -> bytes | Diagnostic:
    """Return what the file holds, or why it must not or cannot be read.

    Opens without following a link and without waiting for a pipe's writer, and looks at what was opened: there
    is no moment in which the file could be exchanged between the look and the reading.
    """
    file = display_path(path, root)
    if not Path(os.path.realpath(path.parent)).is_relative_to(os.path.realpath(root)):
        return _whole("Y102", "the file is outside the project, reached through a link", file, _LINK_HELP)
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        descriptor = os.open(path, flags)
    except (OSError, ValueError) as error:
        if path.is_symlink():
            return _whole("Y102", "the file is a symbolic link", file, _LINK_HELP)
        return _unreadable(file, error)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return _whole("Y102", "not a regular file", file, "a policy is a plain file")
        content = bytearray()
        while chunk := os.read(descriptor, MAX_FILE_BYTES + 1 - len(content)):
            content += chunk
        return bytes(content)
    except OSError as error:
        return _unreadable(file, error)
    finally:
        os.close(descriptor)


def read_text(content: str | bytes, file: str, parser: type = PARSER) -> tuple[YamlDocument | None, list[Diagnostic]]:
    """Read YAML that is already in memory; ``file`` is the name that messages show.

    Args:
        content: The text, or its bytes in UTF-8 with or without a byte order mark.
        file: Posix path relative to the project.
        parser: The parser's class; tests compare both.
    """
    if len(content) > MAX_FILE_BYTES:
        help = "split it: one policy per file, shared parts in profiles"
        return None, [_whole("Y103", "the file is larger than 256 KiB", file, help)]
    if isinstance(content, bytes):
        try:
            text = content.removeprefix(codecs.BOM_UTF8).decode("utf-8")
        except UnicodeDecodeError as error:
            return None, [_not_utf8(content, error, file)]
    else:
        text = content.removeprefix("\ufeff")
    text = text.replace("\r\n", "\n")
    if refused := _refused_characters(text, file):
        return None, refused
    if (conflict := _unresolved_conflict(text, file)) is not None:
        return None, [conflict]
    if (place := first_secret(text)) is not None:
        # No other finding: one that quotes a value alone would show the secret without what gives it away.
        return None, [_at(text, place, "Y123", "what looks like a secret", file, _secret_help(file))]
    composer = Composer(file)
    try:
        document = composer.read(text, parser)
    except yaml.YAMLError as error:
        return None, _findings_of_failure(composer, text, error, parser)
    if document is None and not composer.findings:
        names_a_table = file != PROJECT_FILE and PROFILE_FOLDER not in file.split("/")
        least = "`version: 1` and `table:`" if names_a_table else "`version: 1`"
        return None, [_whole("Y112", "the file is empty", file, f"write at least {least}")]
    return document, sorted(composer.findings)


def _findings_of_failure(composer: Composer, text: str, error: yaml.YAMLError, parser: type) -> list[Diagnostic]:
    """Return all findings of a text that a parser gave up on.

    The pure parser's are preferred, so that both parsers say the same. It may also get further: libyaml reads ahead,
    and since 0.2.6 ends at 1,000 brackets in brackets before the first of them reaches the composer's own limit.
    """
    if parser is not PURE_PARSER:
        by_pure_parser = Composer(composer.file)
        try:
            by_pure_parser.read(text, PURE_PARSER)
        except yaml.YAMLError as pure_error:
            composer, error = by_pure_parser, pure_error
        else:
            if by_pure_parser.findings:
                return sorted(by_pure_parser.findings)
    return sorted([*composer.findings, syntax_diagnostic(error, text, composer.file)])


def _refused_characters(text: str, file: str) -> list[Diagnostic]:
    """Find what must not be in a file at all; YAML's own parsers disagree about some of it."""
    findings = []
    for match in islice(FORBIDDEN.finditer(text), 20):
        refusal = refused_character(match[0])
        assert refusal is not None
        findings.append(_at(text, match.start(), refusal.code, refusal.message, file, refusal.help))
    if "\t" in text and (tab := _TAB.search(text)):
        message = "a tab; YAML and its readers disagree about tabs"
        findings.append(_at(text, tab.end() - 1, "Y106", message, file, "use spaces, not tabs"))
    if directive := _DIRECTIVE.match(text):
        message, help = "a YAML directive (`%...`) is not allowed", "remove the line; files are always read as YAML 1.2"
        findings.append(_at(text, directive.end() - 1, "Y122", message, file, help))
    return sorted(findings)


def _unresolved_conflict(text: str, file: str) -> Diagnostic | None:
    """Find the lines that Git leaves around two versions of one place, from the beginning of a line."""
    opening, closing = _OPENING_MARKER.search(text), _CLOSING_MARKER.search(text)
    if opening is None or closing is None:
        return None
    lines = [number for number, line in enumerate(text.split("\n"), 1) if _ANY_MARKER.match(line)]
    shown = ", ".join(map(str, lines[:-1])) + f" and {lines[-1]}"
    help = f"keep what is right of both versions, and remove the markers on the lines {shown}"
    return _at(text, opening.start(), "Y107", "a conflict of Git that was not resolved", file, help)


def _at(text: str, offset: int, code: str, message: str, file: str, help: str | None) -> Diagnostic:
    line = text.count("\n", 0, offset) + 1
    column = offset - (text.rfind("\n", 0, offset) + 1) + 1
    return Diagnostic(code, Severity.ERROR, message, file, SourceSpan(line, column, line, column + 1), help)


_LINK_HELP = "put the file itself into the project; links are not followed"


def _secret_help(file: str) -> str:
    """Say where it belongs, in words that fit the file."""
    if file == PROJECT_FILE:
        return "write `${env:NAME}` and set that variable where maintainer runs; change the secret, Git has seen it"
    return (
        "take it out, and change the secret, Git has seen it; tables are named without it, and credentials belong "
        "under `spark: conf:` in maintainer.yml, as `${env:NAME}`"
    )


def _whole(code: str, message: str, file: str, help: str) -> Diagnostic:
    return Diagnostic(code, Severity.ERROR, message, file, START_OF_FILE, help)


def _unreadable(file: str, error: OSError | ValueError) -> Diagnostic:
    return _whole("Y101", unread("the file", error), file, "check its name and permissions")


def _not_utf8(content: bytes, error: UnicodeDecodeError, file: str) -> Diagnostic:
    """Point at the first byte that is not UTF-8; offsets of the error start behind a byte order mark."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _whole("Y104", "the file is UTF-16, not UTF-8", file, "save it as UTF-8")
    body = content.removeprefix(codecs.BOM_UTF8)
    before = body[: error.start].decode("utf-8").replace("\r\n", "\n")
    message = f"the byte 0x{body[error.start]:02X} is not UTF-8"
    return _at(before + "?", len(before), "Y104", message, file, "save the file as UTF-8")
