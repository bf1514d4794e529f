"""Find rules without effect: those that reach no table, and those of which a higher rule replaces everything."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from maintainer.policy.diagnostics import Diagnostic, Severity, did_you_mean, nearest
from maintainer.policy.resolve.resolve import RuleSource, TableSource
from maintainer.policy.schema.schema_keys import RULES_MANAGE_NOTHING
from maintainer.policy.table_names import plain_name
from maintainer.policy.yaml.yaml_document import Path

_LIKE_A_REGEX = re.compile(r"[\\^$(|+]|^\.\*")


def check_reach(
    rules: Sequence[RuleSource], tables: Sequence[TableSource], reaching: Mapping[str, Sequence[RuleSource]]
) -> Iterator[Diagnostic]:
    """Yield a warning for each rule that changes no table.

    Args:
        rules: All rules.
        tables: All files with ``table:``.
        reaching: Of each such file the rules that reach its table.
    """
    others: dict[str, list[Sequence[RuleSource]]] = {}
    for rules_of_table in reaching.values():
        for rule in rules_of_table:
            others.setdefault(rule.document.file, []).append(rules_of_table)
    for rule in rules:
        if rule.document.file not in others:
            yield _reaches_nothing(rule, tables)
        elif winners := _winners(rule, others[rule.document.file]):
            message = (
                f"every setting of this rule is replaced by {' and '.join(winners)}, for each table that it reaches"
            )
            help = "remove it, give it a higher `priority`, or make the rules reach different tables"
            yield _warning(rule, ("match",), "P358", message, help)


def _reaches_nothing(rule: RuleSource, tables: Sequence[TableSource]) -> Diagnostic:
    written = rule.document.data["match"].get("tables") or []
    path: Path = ("match", "tables") if written else ("match",)
    if not tables:
        return _warning(rule, path, "P357", "no file names a table, so this rule changes nothing", RULES_MANAGE_NOTHING)
    names = [plain_name(table.ref) for table in tables]
    folders = {name[: cut + 1] + "*" for name in names if (cut := max(name.rfind("."), name.rfind("/"))) > 0}
    help = RULES_MANAGE_NOTHING
    for glob in map(str, written):
        near = nearest(glob, [*names, *folders])
        if _LIKE_A_REGEX.search(glob):
            help = f"`{glob[:60]}` is read as a glob, not as a regular expression: `*` stands for any characters"
            break
        if near is not None and near != glob:
            help = did_you_mean(glob, near)
            break
    return _warning(rule, path, "P357", "this rule reaches no table that has a policy", help)


def _winners(rule: RuleSource, tables: Sequence[Sequence[RuleSource]]) -> list[str]:
    """Return the files of the rules that replace all settings of a rule on each of its tables, if none is left."""
    if not rule.layer.leaves:
        return []
    winners: set[str] = set()
    for rules_of_table in tables:
        higher = [rival for rival in rules_of_table if rival.priority > rule.priority]
        for keys in rule.layer.leaves:
            rival = next((rival for rival in higher if keys in rival.layer.leaves), None)
            if rival is None:
                return []
            winners.add(rival.document.file)
    return sorted(winners)


def _warning(rule: RuleSource, path: Path, code: str, message: str, help: str) -> Diagnostic:
    return Diagnostic(code, Severity.WARNING, message, rule.document.file, rule.document.key_span_of(path), help)
