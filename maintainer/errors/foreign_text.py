"""Make text from outside safe to keep and to show: control characters become escapes, secrets are left out.

Every error, finding and problem passes through `without_secrets` when it is made, and everything that is printed
through `printable`. So no output has to know where a text came from. Pure; imports nothing of ours.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

LEFT_OUT = "***"
"""What stands where a secret was."""

_ITSELF = r"(?!s?[._-]?(?:provider|binding|path|(?:driver\.|executor\.)?file)(?![a-z]))"
"""Follows a word for a secret where the setting holds it; else it names the class or the file that has it."""

_HELD = rf"(?:secret|passw(?:or)?d|passphrase|token|credential){_ITSELF}"
SECRET_KEY = re.compile(
    # Behind `account.key.` stands the name of an account, which may be `file`.
    rf"{_HELD}|(?:access|account|api|private)[._-]?key(?!file|provider)|(?<![a-z])(?:sas|pwd)(?![a-z]|\.token\.provider)",
    re.IGNORECASE,
)
"""What a setting is called whose value is nobody's business."""

_VALUE = r"[^\s\"'`\\<>(){}\[\],;&|]+"
_SHAPES = (
    # What is a secret wherever it stands. A key without its end was cut.
    r"(?P<pem>-----BEGIN[A-Z ]*PRIVATE KEY-----(?:(?!-----END)[\s\S])*(?:-----END[A-Z ]*PRIVATE KEY-----)?)",
    r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    r"(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?",
    r"(?<![A-Za-z0-9])(?:gh[pousr]_|github_pat_|glpat-|xox[abprs]-|dapi|AIza|ya29\.|sk_live_)[\w-]{20,}",
    # A storage account's key: 64 bytes.
    r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{86}(?:==|%3[Dd]%3[Dd])",
)
_PLACED = (
    # User and password of a URL, also where a path made one slash of two. A user alone is the container of
    # `abfss://`, or `git@`.
    # Keys of AWS have slashes. Digits before one are a port, but for a store that has none. The bound keeps it linear.
    r"(?P<store>(?:(?<=s3)|(?<=s3[an])|(?<=gs)):/{1,3})[^/\s\"'<>@:]*:[^\s\"'<>]{0,300}(?=@)",
    r"(?P<slash>(?<!file):/{1,3})[^/\s\"'<>@:\[]*:(?![0-9]{1,5}/)[^\s\"'<>]{0,300}(?=@)",
    r"(?P<user>:/{1,3})[^/\s\"'<>@:]*:[^/\s\"'<>]*(?=@)",
    r"(?P<encoded>%3[Aa]%2[Ff]%2[Ff])[^/\s\"'<>]{0,200}?%3[Aa][^/\s\"'<>]{1,200}?(?=%40)",
    r"(?P<thin>jdbc:oracle:thin:)[^\s/@]{1,200}/[^\s@]{1,200}(?=@)",
    # Signatures of Azure, AWS and Google in a query, also when the query was encoded once more.
    rf"(?P<signature>(?<![A-Za-z0-9])(?i:sig|x-(?:amz|goog)-(?:signature|credential)|signature)(?:=|%3[Dd])){_VALUE}",
    rf"(?P<hadoop>(?<![a-z])fs\.[\w.-]{{0,80}}(?:{_HELD}|\.key(?!file|provider)|\.sas\.(?!token\.provider))[\w.-]{{0,80}}"
    # What comes from the environment is written without its value; an ARN only names a key of Amazon's KMS.
    rf"[\"']?\s*[:=]\s*[\"']?)(?!\$\{{env:|arn:aws){_VALUE}",
)
_CERTAIN = re.compile("|".join((*_SHAPES, *_PLACED)), re.ASCII)
_GIVEN = re.compile(
    rf"(?P<given>(?:{SECRET_KEY.pattern})[\w.-]{{0,60}}=)(?![0-9]+\b){_VALUE}", re.IGNORECASE | re.ASCII
)
"""Given on one line without blanks and quotes, as in a URL or an option: in a policy nothing else looks like it."""

_NAMED = re.compile(
    # `key=value`, `key -> value`, `"key": "value"`; in quotes the value may hold blanks. `key: value` only for a few
    # words: a table may be called `auth.tokens`, and messages begin with `table: `.
    rf"(?P<name>(?:{SECRET_KEY.pattern})[\w.-]{{0,60}}(?:\\?[\"']?\s*(?:=>|->|=|%3D)\s*|\\?[\"']\s*:\s*)"
    r"|(?<![\w.])(?:password|passwd|passphrase|secret|(?:secret|access|account|api|private)[._ -]?key)"
    rf"\s*:\s+)(?:\\?\"[^\"\n\\]+|'[^'\n]+|{_VALUE})"
    r"|(?P<scheme>(?<![a-z])Bearer\s+|Authorization[\"']?\s*[:=]\s*[\"']?(?:\w+\s+)?)[\w.~+/:=-]{8,}",
    re.IGNORECASE | re.ASCII,
)
_HINT = re.compile(
    r":/|%3A%2F|sig|secret|pass|phrase|token|key|credential|sas|pwd|bearer|authorization|jdbc|AKIA|ASIA|eyJ|[A-Za-z0-9+/]{86}"
    r"|gh[pousr]_|_pat_|glpat|xox|dapi|AIza|ya29|sk_live",
    re.IGNORECASE,
)
"""Most texts have none of these, and are not looked at further."""


_FROM_OUTSIDE = r"(?![\"']?\$\{env:\w+(?::-)?\})"
_SETTING = re.compile(
    # Behind the host of an address; an address without its scheme; a setting to the end of its line.
    rf"(?P<host>\bhttps?:/+[^\s/\"'`?#@]+)[/?#][^\s\"'`]*"
    rf"|(?P<address>\bur[il][\"']?\s*:\s+){_FROM_OUTSIDE}(?![\"']?https?:)\S+"
    rf"|(?P<name>(?:{SECRET_KEY.pattern})[\w.-]{{0,60}}[\"']?\s*:\s+){_FROM_OUTSIDE}[^\n]+",
    re.IGNORECASE | re.ASCII,
)
_PIPELINE_COMMAND = re.compile(r"^\s*:(?=:)|#(?=#(?:vso)?\[)")
"""What GitHub at the beginning of a line, and Azure anywhere in it, take for an order to the pipeline."""


def without_secrets(text: str) -> str:
    """Return the text with `LEFT_OUT` where it has a password, a key, a token or a signature; line ends stay."""
    if _HINT.search(text) is None:
        return text
    return _NAMED.sub(_cut, _CERTAIN.sub(_cut, text))


def settings_without_secrets(text: str) -> str:
    """Return text of `maintainer.yml` `without_secrets`, and without the values that are one by their names there."""
    return _SETTING.sub(_cut, without_secrets(text))


def document_without_secrets(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return JSON values with every text in them `without_secrets`; keys stay."""
    return {key: _value_without_secrets(value) for key, value in document.items()}


def _value_without_secrets(value: object) -> object:
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, Mapping):
        return document_without_secrets(value)
    return [_value_without_secrets(item) for item in value] if isinstance(value, (list, tuple)) else value


def first_secret(text: str) -> int | None:
    """Return where the first secret begins that is one whatever stands around it; None without one."""
    if _HINT.search(text) is None:
        return None
    matches = (match for pattern in (_CERTAIN, _GIVEN) for match in pattern.finditer(text))
    return min((match.start() for match in matches if _cut(match) != match[0]), default=None)


def _cut(match: re.Match[str]) -> str:
    """Keep what stands before a value, and the line ends within it."""
    groups = {name: part for name, part in match.groupdict().items() if part is not None and name != "pem"}
    before = next(iter(groups.values()), "")
    return before + LEFT_OUT + "\n" * match[0].count("\n", len(before))


def printable(text: str) -> str:
    r"""Return the text without secrets, and with all but visible characters and blanks as escapes, like ``\x1b``.

    So is what a pipeline that reads the log would take for an order to itself.
    """
    text = _PIPELINE_COMMAND.sub(_spelled_out, without_secrets(text))
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def visible_json(text: str) -> str:
    """Return JSON with the same values, in which every character can be seen: a terminal takes some for commands."""
    return "\n".join(map(_visible_line, text.split("\n")))


def _visible_line(line: str) -> str:
    line = line.replace("##[", "#\\u0023[").replace("##vso[", "#\\u0023vso[")
    if line.isprintable():
        return line
    # Such a character can only stand within a string.
    return "".join(character if character.isprintable() else json.dumps(character)[1:-1] for character in line)


def _spelled_out(match: re.Match[str]) -> str:
    return f"{match[0][:-1]}\\x{ord(match[0][-1]):02x}"
