"""Warn of what is valid and hardly meant: names that lead elsewhere, tables within tables, files that nobody reads.

Letters of another script look like Latin ones, and some characters cannot be seen at all: both make a name that
nobody finds again.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from datetime import date

from maintainer.model.table.log_names import LOG_FOLDER
from maintainer.model.table.store_kinds import SERVED_SCHEMES
from maintainer.policy.diagnostics import Diagnostic
from maintainer.policy.resolve.resolve import Resolution, TableSource
from maintainer.policy.table_names import name_parts
from maintainer.policy.yaml.yaml_document import Document, named_texts

MAX_PARTS = 3
"""``catalog.database.table``; some catalogs have deeper namespaces."""

_SCRIPTS = ("CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE")
"""Scripts with letters that look like Latin ones."""

_WORD = re.compile(r"[^\W\d_]+")


def check_table_names(tables: Iterable[TableSource]) -> Iterator[Diagnostic]:
    """Report names that hardly name a table, and tables that lie within others."""
    by_path: dict[str, TableSource] = {}
    for table in sorted(tables, key=lambda table: table.key):
        if table.ref.is_path:
            by_path.setdefault(table.key.rstrip("/"), table)
        yield from _odd_name(table)
    for key, table in by_path.items():
        outer = next((by_path[folder] for folder in _folders_above(key) if folder in by_path), None)
        if outer is not None:
            place = f"{outer.document.file}:{outer.document.span_of(('table',)).line}"
            message = f"`{table.written}` lies within `{outer.written}` ({place}), which also has a policy"
            help = (
                "Delta treats all files below a table as that table's: "
                "a VACUUM of the outer table may delete files of the inner one"
            )
            yield table.document.warning_at(("table",), "P391", message, help)


def _odd_name(table: TableSource) -> Iterator[Diagnostic]:
    location = table.ref.location
    if table.ref.is_path:
        rest = re.sub(r"^[A-Za-z][A-Za-z0-9+.-]*:(//[^/]*)?", "", location)
        if not rest.strip("/"):
            what = "the root of a file system" if location == "/" else "a whole bucket or container"
            help = (
                "name the folder of the table; for many write `roots:` in maintainer.yml and a rule with `manage: true`"
            )
            yield table.document.warning_at(("table",), "P388", f"`{table.written}` is {what}", help)
        elif "*" in rest:
            help = 'for many tables write `match: {tables: ["..."]}` and `manage: true`'
            message = f"`{table.written}` is a pattern, and `table` names one folder"
            yield table.document.warning_at(("table",), "P389", message, help)
    elif len(name_parts(table.ref.identifier)) > MAX_PARTS:
        message = f"`{table.written}` has {len(name_parts(table.ref.identifier))} parts"
        help = "a name is `table`, `database.table` or `catalog.database.table`; a dot within a part needs back-ticks"
        yield table.document.warning_at(("table",), "P390", message, help)


def _folders_above(key: str) -> Iterator[str]:
    while "/" in key:
        key = key.rpartition("/")[0]
        yield key


_NOT_FILLED_IN = re.compile(r"~(?:/|$)|.*(?:\$[A-Za-z_]|%[A-Za-z_]+%)")
_ODD_ADDRESSES: tuple[tuple[re.Pattern[str], str, str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), what, help)
    for pattern, what, help in (
        (r"[A-Z]:[\\/]|.*\\", "has a backslash or a drive of Windows", "write the path that Spark knows, with slashes"),
        (
            rf"(?:{'|'.join(sorted(SERVED_SCHEMES))}):/(?:[^/]|//)",
            "does not have two slashes and then the bucket",
            "write an address like `s3://bucket/orders`",
        ),
        (
            r"https?://",
            "is the web address of a store",
            "write `s3://BUCKET/...`, `gs://BUCKET/...` or `abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/...`",
        ),
        (r"gcs://", "has a scheme that Spark does not know", "write `gs://`"),
        (r"abfss?://[^@]*$", "names no storage account", "write `abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/...`"),
        (rf".*/{LOG_FOLDER}/?$", "is the log of a table", "name the table's folder, which is the one above"),
        (r".*/[^/]+\.parquet$", "is called like a data file", "name the table's folder"),
        (
            r".*/[A-Z0-9_]+=[^/]*/?$",
            "is called like a partition of a table",
            "name the table's folder; `optimize: {where: ...}` chooses partitions",
        ),
    )
)
"""A pattern of addresses that hardly lead to a table, what is odd about them, and what to write."""


def check_addresses(documents: Mapping[str, Document]) -> Iterator[Diagnostic]:
    """Report addresses of tables, roots and the state that hardly lead to what was meant."""
    for document in documents.values():
        for path, text in named_texts(document.data):
            if path[0] not in ("table", "state", "roots"):
                continue
            if _NOT_FILLED_IN.match(text):
                message = f"`{text[:60]}`: `~` and variables of a shell are not filled in here"
                help = "write the whole path; in maintainer.yml also `${env:NAME}`"
                yield document.error_at(path, "P395", message, help)
                continue
            odd = next(((what, help) for pattern, what, help in _ODD_ADDRESSES if pattern.match(text)), None)
            if odd is not None:
                yield document.warning_at(path, "P396", f"`{text[:60]}` {odd[0]}", odd[1])
            elif path[0] == "roots" and "*" in text:
                help = "write the folder above; tables are looked for below it, and a rule chooses among them"
                yield document.warning_at(path, "P396", f"`{text[:60]}` is a pattern, and a root is one folder", help)


def check_letters(documents: Mapping[str, Document]) -> Iterator[Diagnostic]:
    """Report names of tables, owners and tags with letters that look like others, or with invisible characters."""
    for document in documents.values():
        for path, text in named_texts(document.data):
            odd = None if path[0] == "state" else _odd_character(text)
            if odd is not None:
                what = unicodedata.name(odd, "no name").lower()
                message = f"`{text[:60]}` has the character U+{ord(odd):04X}, {what}"
                help = "type the name again: it only looks like another name"
                yield document.warning_at(path, "P392", message, help)


def _odd_character(text: str) -> str | None:
    """Return an invisible character, or a letter of another script within a word of Latin ones."""
    if text.isascii():
        return None
    invisible = next((letter for letter in text if unicodedata.category(letter) == "Cf"), None)
    if invisible is not None:
        return invisible
    for word in _WORD.findall(text):
        scripts = [unicodedata.name(letter, "").partition(" ")[0] for letter in word]
        if "LATIN" in scripts:
            odd = next((at for at, script in enumerate(scripts) if script in _SCRIPTS), None)
            if odd is not None:
                return str(word[odd])
    return None


def check_suspension(resolution: Resolution, today: date) -> Iterator[Diagnostic]:
    """Report a suspension that is over: the key does nothing any more."""
    suspend, setting = resolution.policy.suspend, resolution.merged.get("suspend.until")
    if suspend is None or suspend.until is None or suspend.until > today:
        return
    assert setting is not None
    assert setting.document is not None  # no default suspends anything
    message = f"the suspension of `{resolution.policy.table}` ended on {suspend.until}"
    help = "remove `suspend`, or name a later day"
    yield setting.document.warning_at(setting.path, "P393", message, help)
