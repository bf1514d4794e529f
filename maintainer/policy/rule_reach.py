"""Find rules without effect: those that reach no table, and those of which a higher rule replaces everything."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from maintainer.policy.diagnostics import Diagnostic, did_you_mean, nearest
from maintainer.policy.resolve.merge import TAGS
from maintainer.policy.resolve.resolve import RuleSource
from maintainer.policy.schema.schema_keys import MANY_TABLES, either
from maintainer.policy.yaml.yaml_document import Path

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
        if rule.manages:
            manager = next((rival for rival in higher if rival.manages), None)
            if manager is None:
                return []
            winners.add(manager.document.file)
        for keys in rule.layer.leaves:
            rival = next((rival for rival in higher if keys in rival.layer.leaves), None)
            if rival is None:
                return []
            winners.add(rival.document.file)
    return sorted(winners)
