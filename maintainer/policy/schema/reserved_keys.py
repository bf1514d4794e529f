"""What the policy language has and this version does not do: refused by name, never ignored.

Whoever builds an operation deletes its lines here, and the tests that name them.
"""

from __future__ import annotations

from collections.abc import Iterator

from maintainer.policy.yaml.yaml_document import Path

NOT_SUPPORTED_YET: dict[str | tuple[str, object], str] = {
    "match.minSize": "name the tables in `match.tables`",
}
"""Settings of policies: a dotted key, or a key with the one value that is meant; and what to write instead.

``[]`` stands for every item of a list. In maintainer.yml the same holds under ``defaults`` and in the
``overrides`` of environments.
"""

NOT_SUPPORTED_YET_IN_PROJECT: dict[str | tuple[str, object], str] = {
    "environments.*.catalog": "write the catalog into the tables' names",
}
"""The same for keys of maintainer.yml itself; ``*`` stands for every key of a map."""


def unsupported(
    data: object, base: Path, table: dict[str | tuple[str, object], str]
) -> Iterator[tuple[Path, str, str]]:
    """Yield the path of every value below ``data`` that the table refuses, what is refused, and what to write."""
    for entry, help in table.items():
        key, wanted = entry if isinstance(entry, tuple) else (entry, _ANY)
        for path, value in _find(data, base, key.replace("[]", ".[]").split(".")):
            if value is not None and (wanted is _ANY or value == wanted):
                subject = "" if wanted is _ANY else f"`{str(value).lower()}` is "
                yield path, f"{subject}not supported yet", help


_ANY = object()


def _find(value: object, path: Path, parts: list[str]) -> Iterator[tuple[Path, object]]:
    """Yield the values that a dotted key names; the depth is that of the key."""
    if not parts:
        yield path, value
        return
    first, rest = parts[0], parts[1:]
    if first == "[]":
        for position, inner in enumerate(value if isinstance(value, list) else ()):
            yield from _find(inner, (*path, position), rest)
    elif isinstance(value, dict):
        for key in list(value) if first == "*" else [first]:
            if key in value:
                yield from _find(value[key], (*path, key), rest)
