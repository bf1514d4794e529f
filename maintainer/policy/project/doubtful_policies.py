"""Warn of what is valid and hardly meant: names that lead elsewhere, tables within tables, rules without effect.

Letters of another script look like Latin ones, and some characters cannot be seen at all: both make a name that
nobody finds again. A rule has no effect if it reaches no table, or if higher rules replace everything it says.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from maintainer.model.table.log_names import LOG_FOLDER
from maintainer.model.table.store_kinds import SERVED_SCHEMES
from maintainer.policy.diagnostics import Diagnostic, did_you_mean, nearest
from maintainer.policy.resolve.merge import TAGS
from maintainer.policy.resolve.resolve import Resolution, RuleSource, TableSource
from maintainer.policy.schema.schema_keys import MANY_TABLES, either
from maintainer.policy.table_names import is_glob, name_parts
from maintainer.policy.yaml.yaml_document import Path, YamlDocument, named_texts

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
            message = f"`{table.written}` lies within `{outer.written}` ({outer.place}), which also has a policy"
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
_ODD_ADDRESSES = (
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
"""A pattern of addresses that hardly lead to a table, what is odd about them, and what to write."""


def check_names(documents: Mapping[str, YamlDocument]) -> Iterator[Diagnostic]:
    """Report addresses that hardly lead to what was meant, and names with letters that nobody sees or that look alike.

    Addresses are those of tables, roots and the state; names those of tables, owners, tags and roots.
    """
    for document in documents.values():
        for path, text in named_texts(document.data):
            if path[0] in ("table", "state", "roots"):
                yield from _odd_address(document, path, text)
            odd = None if path[0] == "state" else _odd_character(text)
            if odd is not None:
                what = unicodedata.name(odd, "no name").lower()
                message = f"`{text[:60]}` has the character U+{ord(odd):04X}, {what}"
                help = "type the name again: it only looks like another name"
                yield document.warning_at(path, "P392", message, help)


def _odd_address(document: YamlDocument, path: Path, text: str) -> Iterator[Diagnostic]:
    if _NOT_FILLED_IN.match(text):
        message = f"`{text[:60]}`: `~` and variables of a shell are not filled in here"
        yield document.error_at(path, "P395", message, "write the whole path; in maintainer.yml also `${env:NAME}`")
        return
    odd = next(((what, help) for pattern, what, help in _ODD_ADDRESSES if re.match(pattern, text, re.IGNORECASE)), None)
    if odd is not None:
        yield document.warning_at(path, "P396", f"`{text[:60]}` {odd[0]}", odd[1])
    elif path[0] == "roots" and "*" in text:
        help = "write the folder above; tables are looked for below it, and a rule chooses among them"
        yield document.warning_at(path, "P396", f"`{text[:60]}` is a pattern, and a root is one folder", help)


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


_TAGS_NAMED = 10
_LIKE_A_REGEX = re.compile(r"[\\^$(|+]|^\.\*")


@dataclass(frozen=True, slots=True)
class Reach:
    """All rules, and which of them reach which table.

    Args:
        rules: All rules.
        tables: The plain name of each table, with the rules that reach it.
        tags: All tags that ``match.tags`` of some rule could find.
        unknown: Some rules manage tables, and these were not looked for in all places yet: any rule may reach more.
    """

    rules: Sequence[RuleSource]
    tables: Sequence[tuple[str, Sequence[RuleSource]]]
    tags: frozenset[str] = frozenset()
    unknown: bool = False


def _warning(rule: RuleSource, path: Path, code: str, message: str, help: str) -> Diagnostic:
    return rule.document.warning_at(path, code, message, help, at_key=True)


def check_reach(reach: Reach) -> Iterator[Diagnostic]:
    """Yield a warning for each rule that changes no table."""
    yield from _missed_by_case(reach)
    if reach.unknown:
        return
    others: dict[str, list[Sequence[RuleSource]]] = {}
    for _, rules_of_table in reach.tables:
        for rule in rules_of_table:
            others.setdefault(rule.document.file, []).append(rules_of_table)
    for rule in reach.rules:
        if rule.document.file not in others:
            yield _reaches_nothing(rule, [name for name, _ in reach.tables], reach.tags)
        elif winners := _winners(rule, others[rule.document.file]):
            message = (
                f"every setting of this rule is replaced by {' and '.join(winners)}, for each table that it reaches"
            )
            help = "remove it, give it a higher `priority`, or make the rules reach different tables"
            yield _warning(rule, ("match",), "P358", message, help)


def _missed_by_case(reach: Reach) -> Iterator[Diagnostic]:
    """Warn, once for each rule, of a table's name that its globs would fit, or exclude, if they had no case."""
    names = [name for name, _ in reach.tables if "/" not in name]
    with_capitals = [name for name in names if name != name.lower()]
    for rule in reach.rules:
        match = rule.match
        # A name that excludes nothing is told after the search, if the rule manages.
        exclude = tuple(_lower(glob) if is_glob(glob) or not rule.manages else glob for glob in match.exclude)
        lower = replace(match, tables=match.tables and tuple(map(_lower, match.tables)), exclude=exclude)
        for name in with_capitals if lower == match else names:
            if lower.fits_name(name.lower()) != match.fits_name(name):
                message = f"the case of letters alone decides whether this rule reaches `{name}`"
                help = "write the table as the glob has it, or the glob as the table is written: case counts in globs"
                yield _warning(rule, ("match",), "P357", message, help)
                break


def _lower(glob: str) -> str:
    return glob if "/" in glob else glob.lower()


def _reaches_nothing(rule: RuleSource, names: Sequence[str], tags: frozenset[str]) -> Diagnostic:
    written = rule.document.data["match"].get("tables") or []
    path: Path = ("match", "tables") if written else ("match",)
    if rule.manages:
        help = "`maintainer inventory` shows which tables there are, and what rules compare with"
        return _warning(rule, path, "P357", "this rule matches no table in the declared places", help)
    if not names:
        return _warning(rule, path, "P357", "no file names a table, so this rule changes nothing", MANY_TABLES)
    wanted = rule.document.data["match"].get("tags") or []
    if wanted and tags.isdisjoint(wanted):
        message = f"this rule reaches no table: none has the tag {either([f'`{tag}`' for tag in wanted])}"
        return _warning(rule, ("match", "tags"), "P357", message, _tag_help(wanted, tags))
    folders = {name[: cut + 1] + "*" for name in names if (cut := max(name.rfind("."), name.rfind("/"))) > 0}
    help = MANY_TABLES
    for glob in map(str, written):
        near = nearest(glob, [*names, *folders])
        if _LIKE_A_REGEX.search(glob):
            help = f"`{glob[:60]}` is read as a glob, not as a regular expression: `*` stands for any characters"
            break
        if near is not None and near != glob:
            help = did_you_mean(glob, near)
            break
    return _warning(rule, path, "P357", "this rule reaches no table that has a policy", help)


def _tag_help(wanted: Sequence[str], tags: frozenset[str]) -> str:
    for tag in wanted:
        if (near := nearest(tag, tags)) is not None:
            return did_you_mean(tag, near)
    shown = ", ".join(sorted(tags)[:_TAGS_NAMED])
    return (
        f"there are: {shown}" if tags else "no table has a tag: write `tags:` in files of tables, or name tables here"
    )


def _winners(rule: RuleSource, tables: Sequence[Sequence[RuleSource]]) -> list[str]:
    """Return the files of the rules that replace all settings of a rule on each of its tables, if none is left.

    A rule that manages has an effect without settings, where no higher rule manages the same tables.
    """
    if (not rule.layer.leaves and not rule.manages) or TAGS in rule.layer.leaves:
        return []
    winners: set[str] = set()
    for rules_of_table in tables:
        smaller = rule.match.min_size_bytes  # what reaches only larger tables leaves the others to this rule
        rivals = (rival for rival in rules_of_table if rival.match.min_size_bytes <= smaller)
        higher = [rival for rival in rivals if rival.priority > rule.priority]
        of_each = [[rival for rival in higher if keys in rival.layer.leaves] for keys in rule.layer.leaves]
        of_each += [[rival for rival in higher if rival.manages]] if rule.manages else []
        if not all(of_each):
            return []
        winners |= {replacing[0].document.file for replacing in of_each}
    return sorted(winners)
