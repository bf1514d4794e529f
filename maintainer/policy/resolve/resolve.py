"""Resolve levels of settings into the effective policy of one table, complete and in base units.

Table files, rules and profiles each give a level.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache, reduce
from pathlib import Path
from typing import Any

from maintainer.model.cached_property import cached_property
from maintainer.model.codec import MAX_VALUES, once
from maintainer.model.table.table_facts import TableRef
from maintainer.policy.resolve.merge import (
    Layer,
    Level,
    Merged,
    Setting,
    base_value,
    built_in_layers,
    document_layer,
    merge,
    min_file_size_of,
)
from maintainer.policy.resolve.policy_fields import field_key, policy_part
from maintainer.policy.resolve.policy_settings import ClusterPolicy, PurgePolicy
from maintainer.policy.resolve.resolved import BUILT_IN, WEEKDAYS, Origin, OriginsInFile, ResolvedPolicy, policy_digest
from maintainer.policy.table_names import TableMatch, absolute_path, name_key, name_matches, table_match, table_ref
from maintainer.policy.yaml.yaml_document import YamlDocument


@dataclass(frozen=True, slots=True)
class _Source:
    document: YamlDocument

    @property
    def tags(self) -> frozenset[str] | None:
        """The tags that the file itself sets; None where it says nothing about tags."""
        return tags_of(self.document.data.get("tags"))


@dataclass(frozen=True, slots=True)
class TableSource(_Source):
    """A file with ``table:``. ``written`` is the name as the file has it."""

    ref: TableRef
    written: str

    @property
    def key(self) -> str:
        """What is equal for two spellings of one table."""
        return name_key(self.ref)

    @property
    def place(self) -> str:
        """File and line of the name."""
        return f"{self.document.file}:{self.document.span_of(('table',)).line}"

    def layer(self) -> Layer:
        """Return the file's settings. Not kept: they take more room than the file, and are read once."""
        return document_layer(self.document, Level.TABLE)

    @property
    def extends(self) -> tuple[str, ...]:
        """Names of profiles, lowest first."""
        return tuple(self.extends_at.values())

    @property
    def extends_at(self) -> dict[int, str]:
        """The same by their place in the list; a file with errors may hold anything there."""
        extends = self.document.data.get("extends")
        items = enumerate(extends) if isinstance(extends, list) else ()
        return {position: name for position, name in items if isinstance(name, str)}


@dataclass(frozen=True)
class RuleSource(_Source):
    """A file with ``match:``. ``manages``: it manages the tables that it matches, also those without a file."""

    match: TableMatch
    priority: int
    manages: bool = False

    @cached_property
    def layer(self) -> Layer:
        return document_layer(self.document, Level.RULE)

    @property
    def sort_key(self) -> tuple[int, str]:
        """Low to high; rules of one priority never disagree, so their order is only that of messages."""
        return (self.priority, self.document.file)

    @property
    def line(self) -> int:
        """Where ``match:`` stands: what a table without a file comes from."""
        return self.document.key_span_of(("match",)).line

    @property
    def min_size_origin(self) -> Origin:
        span = self.document.key_span_of(("match", "minSize"))
        return Origin(self.document.file, span.line, span.column)

    def excluded_at(self, name: str, others: Iterable[str] = ()) -> str | None:
        """Return file and line of ``match.exclude`` that alone keeps the rule from a table; None if none does.

        The names are as for `TableMatch.fits_name`.
        """
        if not (replace(self.match, exclude=()).fits_name(name) and self.match.fits_tags(())):
            return None
        names = (name, *others)
        globs = enumerate(self.match.exclude)
        at = next((at for at, glob in globs if any(name_matches(each, (glob,)) for each in names)), None)
        return None if at is None else f"{self.document.file}:{self.document.span_of(('match', 'exclude', at)).line}"


@dataclass(frozen=True)
class ProfileSource(_Source):
    """A file in ``_profiles/``; its name is the file's, without folder and ending."""

    @property
    def name(self) -> str:
        """What ``extends`` calls it."""
        return Path(self.document.file).stem

    @cached_property
    def layer(self) -> Layer:
        return document_layer(self.document, Level.PROFILE)


def table_source(document: YamlDocument, root: Path) -> TableSource:
    """Read a file that has ``table:``."""
    written = str(document.data["table"])
    return TableSource(document, table_ref(written, root), written)


def rule_source(document: YamlDocument, root: Path) -> RuleSource:
    """Read a file that has ``match:``."""
    match: Mapping[str, Any] = document.data["match"]
    priority, manages = int(document.data.get("priority") or 0), document.data.get("manage") is True
    return RuleSource(document, table_match(match, root), priority, manages)


def by_size(resolve_by: Callable[[Sequence[RuleSource]], Resolution], rules: Sequence[RuleSource]) -> Resolution:
    """Resolve a table once for each size from which on another rule reaches it.

    Args:
        resolve_by: Resolves it by the rules that reach a table of some size.
        rules: All rules that may reach it.
    """
    resolved = [
        (least, resolve_by([rule for rule in rules if rule.match.min_size_bytes <= least]))
        for least in sorted({0, *(rule.match.min_size_bytes for rule in rules)})
    ]
    sizes, smallest = tuple(resolved), resolved[0][1]
    if len(sizes) == 1:
        return smallest
    digest = policy_digest({str(least): resolution.policy.digest for least, resolution in sizes})
    policies = tuple((least, resolution.policy) for least, resolution in sizes)
    return replace(smallest, policy=replace(smallest.policy, digest=digest, sizes=policies), sizes=sizes)


def own_tags(levels: Iterable[frozenset[str] | None]) -> frozenset[str]:
    """Return the tags of all levels that set any."""
    return frozenset().union(*(tags for tags in levels if tags is not None))


def reaching_rules(
    rules: Sequence[RuleSource], name: str, tags: frozenset[str], others: Collection[str] = ()
) -> tuple[RuleSource, ...]:
    """Return the rules that reach a table, in their order.

    ``match.tags`` finds every tag of the table, also those that other rules give it. Tags only add up, and a rule takes
    none away. So there is one answer, whatever the order of the rules is, and a rule that needs a tag cannot give it to
    itself.

    Args:
        rules: All rules.
        name: The table's `plain_name`.
        tags: Those of its file, of the profiles that it extends, and of the project's defaults.
        others: Its further names.
    """
    named = [rule for rule in rules if rule.match.fits_name(name, others)]
    while True:
        reaching = tuple(rule for rule in named if rule.match.fits_tags(tags))
        all_tags = own_tags([tags, *(rule.tags for rule in reaching)])
        if all_tags == tags:
            return reaching
        tags = all_tags  # larger each time, and there are only so many tags


def tags_of(value: object) -> frozenset[str] | None:
    """Read ``tags``; None where nothing is said about them."""
    return frozenset(str(tag) for tag in value) if isinstance(value, list) else None


@dataclass(frozen=True, slots=True)
class Resolution:
    """The effective policy of a table, and the merged settings with everything they replaced."""

    policy: ResolvedPolicy
    merged: Merged
    values: Mapping[str, object]
    """Every effective value by dotted key, in base units: what the digest is taken of."""

    named_by_file: bool = True
    """False for a table that only rules reach: ``policy.file`` is the rule that manages it, or else the highest one."""

    sizes: tuple[tuple[int, Resolution], ...] = ()
    """As ``policy.sizes``."""

    @property
    def each_size(self) -> tuple[Resolution, ...]:
        """What holds at one size or another; itself alone where the size decides nothing."""
        return tuple(of_size for _, of_size in self.sizes) or (self,)


def resolve(
    ref: TableRef, file: str, layers: Sequence[Layer], *, root: Path, timezone: str, named_by_file: bool = True
) -> Resolution:
    """Merge the levels of one table and read them into a policy.

    Args:
        ref: The table.
        file: The file that names it, or the rule that reaches it.
        layers: What files say, from low to high; built-in defaults are put below.
        root: Where relative checkpoint paths start.
        timezone: IANA zone of windows that name none.
        named_by_file: Whether ``file`` names the table itself.
    """
    merged = _with_min_file_size(merge([*built_in_layers(layers), *layers]))
    values = effective_values(merged, timezone)
    return Resolution(_policy(ref, file, merged, values, root), merged, values, named_by_file)


_PURGE = {f"optimize.purge.{field_key(one)}": one.default for one in fields(PurgePolicy)}


def effective_values(merged: Merged, timezone: str) -> dict[str, object]:
    """Return every effective value by dotted key, in base units."""
    values = {".".join(keys): base_value(".".join(keys), setting.value) for keys, setting in merged.leaves.items()}
    if ("autoCompact",) in merged.maps:
        values["autoCompact"] = True
    if ("optimize", "purge") in merged.maps:
        # The map alone is a switch. Without values the digest would not see that somebody turned it.
        values = {**_PURGE, **values}
    windows = values.get("window")
    if isinstance(windows, list):
        values["window"] = [{"timezone": timezone, **window} for window in windows]
    return values


def _with_min_file_size(merged: Merged) -> Merged:
    keys = ("optimize", "minFileSize")
    if keys in merged.leaves:
        return merged
    largest = base_value("optimize.maxFileSize", merged.leaves["optimize", "maxFileSize"].value)
    assert isinstance(largest, int)
    smallest = min_file_size_of(largest)
    return Merged({**merged.leaves, keys: Setting(smallest, Level.BUILT_IN, BUILT_IN)}, merged.maps)


def _policy(ref: TableRef, file: str, merged: Merged, values: Mapping[str, Any], root: Path) -> ResolvedPolicy:
    data, below = _by_section(merged, values, root), _suspended_below(merged)
    if below:
        data["suspend"]["below"] = below
    return policy_part(
        ResolvedPolicy,
        data,
        table=ref,
        file=file,
        digest=once(policy_digest({**values, "suspend.below": below} if below else values)),
        origins=_origins(merged, file),
    )


def _by_section(merged: Merged, values: Mapping[str, Any], root: Path) -> dict[str, Any]:
    """Put the effective values into their maps, as a file would have them; an empty map counts as well."""
    data: dict[str, Any] = {}
    for keys in sorted([*merged.maps, *merged.leaves]):
        section = data
        for key in keys[:-1]:
            section = section.setdefault(key, {})
        section[keys[-1]] = values[".".join(keys)] if keys in merged.leaves else {}
    cluster = data["optimize"].setdefault("cluster", {})
    # One and a half times the least size, as Delta's defaults are.
    least = cluster.get("minCubeSize", ClusterPolicy().min_cube_size_bytes)
    cluster.setdefault("targetCubeSize", least * 3 // 2)
    data["window"] = [{"days": WEEKDAYS.values(), **item} for item in data.get("window", ())]
    data["consumers"] = [
        {**item, "checkpoint": item.get("checkpoint") and absolute_path(item["checkpoint"], root)}
        for item in data.get("consumers", ())
    ]
    data["verify"]["expectations"] = [
        {"type": item["type"], "arguments": {key: value for key, value in item.items() if key != "type"}}
        for item in data["verify"].get("expectations", ())
    ]
    return data


def _suspended_below(merged: Merged) -> list[dict[str, Any]]:
    """Return the suspensions of lower levels that a higher one replaced, from high to low."""
    found, setting = list[dict[str, Any]](), merged.get("suspend.reason")
    while setting is not None and (setting := setting.below) is not None:
        assert setting.document is not None  # no default suspends anything
        data: Any = setting.document.data
        written = reduce(lambda value, key: value[key], setting.path[:-1], data)
        found.append({key: value for key, value in written.items() if value is not None})
    return found


def _origins(merged: Merged, file: str) -> Mapping[str, Origin]:
    origins = {**merged.maps, **{keys: setting.origin for keys, setting in merged.leaves.items()}}
    places = ((keys, replace(at, file="") if at.file == file else at) for keys, at in origins.items())
    return OriginsInFile(file, _by_dotted_key(tuple(places)))


@lru_cache(maxsize=MAX_VALUES)
def _by_dotted_key(places: tuple[tuple[tuple[str, ...], Origin], ...]) -> Mapping[str, Origin]:
    return {".".join(keys): origin for keys, origin in places}
