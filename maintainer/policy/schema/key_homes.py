"""Say where an unknown key belongs: in another map, in another file, or under another name.

Words of other tools and first guesses are in a table; the homes of all other keys follow from the schemas.
"""

from __future__ import annotations

from maintainer.policy.diagnostics import did_you_mean, nearest
from maintainer.policy.schema.schema_keys import (
    FALSE_WORDS,
    MANY_TABLES,
    POLICY_SCHEMA,
    PROJECT_SCHEMA,
    either,
    keys_of,
)
from maintainer.policy.yaml.yaml_document import Path

RUN_DIR_WENT = (
    "`state:` names the folder of everything that lasts between runs; run folders lie in its `runs`, the ledger in its "
    "`ledger`. Write `state: FOLDER` where you had `runDir: FOLDER/runs`"
)

_CLUSTERING = "clustering columns are the table's own: `ALTER TABLE ... CLUSTER BY (...)`"
_COMPACTION = "compaction is on by default; its sizes are under `optimize`"
_RULES = "each rule is a file of its own with `match:` at the top"
_SCHEDULE = "your scheduler starts runs; `every: 1d` under `optimize` or `vacuum` is the least time between two"

_TABLE_WORDS = {
    "enabled": "to leave the table alone write `suspend: {reason: ...}`; without it the table is maintained",
    "optimize.enabled": "compaction is always on; `when:` says from how many small files it is worth it, and "
    "`suspend: {reason: ...}` at the top level leaves the whole table alone",
    "vacuum.enabled": "leave `vacuum` out here, and in defaults, rules and profiles that reach the table: without any, "
    "nothing is deleted; `match.exclude` in a rule leaves a table out",
    "suspend.enabled": "remove `suspend`: only with it is a table left alone",
    "compact": _COMPACTION,
    "compaction": _COMPACTION,
    "schedule": _SCHEDULE,
    "cron": _SCHEDULE,
    "zorderBy": "write `optimize: {zorder: {columns: [...]}}`",
    "clusterBy": _CLUSTERING,
    "clusteredBy": _CLUSTERING,
    "tests": "write `verify: {expectations: [...]}`",
    "optimize.cluster.columns": _CLUSTERING,
    "optimize.clusterBy": _CLUSTERING,
    "optimize.zorderBy": "write `zorder: {columns: [...]}`",
    "optimize.schedule": "your scheduler starts runs; `every: 1d` is the least time between two",
    "vacuum.schedule": "your scheduler starts runs; `every: 1d` is the least time between two",
}
"""What people write in the settings of a table, by its place there, and what to write instead."""

_WORDS: dict[str, dict[str, str]] = {
    POLICY_SCHEMA: {**_TABLE_WORDS, "name": "the table is named by `table:`", "rules": _RULES},
    PROJECT_SCHEMA: {
        **_TABLE_WORDS,
        "policies": "policies are always read from policies/",
        "rules": f"{_RULES}, in policies/",
        "tables": f"tables are named by files in policies/; {MANY_TABLES}",
    },
}

_SPARK = "settings of Spark stand under `conf`, with their whole names: `conf: {spark.driver.memory: 4g}`"

_OTHER_FILE = {
    POLICY_SCHEMA: (PROJECT_SCHEMA, "maintainer.yml"),
    PROJECT_SCHEMA: (POLICY_SCHEMA, "a file in policies/"),
}

_ENVIRONMENT = "environments.*"


def unknown_key_help(key: str, known: list[str], path: Path, file: str) -> str:
    """Name the map or file that the key belongs in, or the key that was likely meant, or what is known here.

    Args:
        key: The key.
        known: The keys of the map that it was found in.
        path: That map.
        file: The schema that the document has.
    """
    if key == "runDir" and "state" in known:
        return RUN_DIR_WENT
    help = _word_help(key, path, file) or _home_help(key, path, file) or _foreign_help(key, path, file)
    if help is not None:
        return help
    near = nearest(key, known)
    if near:
        return did_you_mean(key, near)
    if path == ("spark",):
        return _SPARK
    return "known here: " + ", ".join(known) if known else "no key is allowed here"


def switch_help(value: object, path: Path, file: str) -> str | None:
    """Say how a map is done without, to whoever wrote `false` in its place; None for any other value or map."""
    return _word_help("enabled", path, file) if str(value).lower() in FALSE_WORDS else None


def _word_help(key: str, path: Path, file: str) -> str | None:
    """Look up a word that is no key anywhere near, as it is written or with underscores."""
    inside = path[1:] if path[:1] == ("defaults",) else path
    written = ".".join([*map(str, inside), key]).replace("_", "").casefold()
    return next((help for word, help in _WORDS.get(file, {}).items() if word.casefold() == written), None)


def _home_help(key: str, path: Path, file: str) -> str | None:
    """Name the homes of a key, or of several keys joined by dots, in this kind of file; else in the other one."""
    here, joined = _place(path, file), "." in key
    near = _nearest_homes([home for home in _homes(key, file) if joined or home != here], here)
    if not near:
        return _other_file_help(key, file)
    places = either(["at the top level" if not home else f"under `{_named(home, path)}`" for home in near])
    if not here and all(home.startswith("defaults") for home in near):
        return f"for all tables write {_written(key)} {places}"
    if here.startswith(_ENVIRONMENT) and not any(home.startswith(_ENVIRONMENT) for home in near):
        places += "; it cannot differ by environment"
    if joined:
        return f"write {_written(key)}" + ("" if near[0] == here else f" {places}")
    return f"`{key}` belongs {places}" + (f"; {MANY_TABLES}" if key == "tables" and not path else "")


def _other_file_help(key: str, file: str) -> str | None:
    other, name = _OTHER_FILE.get(file, (file, ""))
    near = _nearest_homes(_homes(key, other), "") if other != file else []
    places = either([f"under `{_named(home, ())}` in {name}" if home else f"in {name}" for home in near])
    return f"write {_written(key)} {places}" if near else None


def _foreign_help(key: str, path: Path, file: str) -> str | None:
    """Send settings of Delta and of Spark home, which have their whole names there."""
    if path:
        return None
    if key.lower().startswith("delta."):
        retention = "; how long maintainer keeps files is `vacuum: {retention: 7d}`"
        own = retention if key.lower() == "delta.deletedfileretentionduration" else ""
        return f"`{key}` belongs under `{'defaults.' if file == PROJECT_SCHEMA else ''}properties`{own}"
    if key.startswith("spark."):
        place = "" if file == PROJECT_SCHEMA else " in maintainer.yml"
        return f"write `spark: {{conf: {{{key[:60]}: ...}}}}`{place}"
    return None


def _homes(key: str, file: str) -> list[str]:
    """Return the maps of a kind of file that hold a key; the top is empty."""
    names = [] if "*" in key else [description.name for description in keys_of(file)]
    return [name[: -len(key)].removesuffix(".") for name in names if f".{name}".endswith(f".{key}")]


def _nearest_homes(homes: list[str], here: str) -> list[str]:
    """Return the homes in the same part of the file, else those that are not of one environment; three at most."""
    first = here.partition(".")[0]
    same_part = [home for home in homes if first and home.partition(".")[0] == first]
    general = [home for home in homes if not home.startswith(_ENVIRONMENT)]
    return sorted(same_part or general or homes, key=lambda home: home.count("."))[:3]


def _place(path: Path, file: str) -> str:
    """Return the dotted name of a map, with `*` for names that are free."""
    names = {description.name for description in keys_of(file)}
    place = ""
    for part in path:
        if not isinstance(part, int):
            step = f"{place}.{part}".removeprefix(".")
            place = step if step in names else f"{place}.*".removeprefix(".")
    return place


def _named(home: str, path: Path) -> str:
    """Put the environment's own name, or `NAME`, where a name is free."""
    inside = path[:1] == ("environments",) and len(path) > 1 and home.startswith(_ENVIRONMENT)
    return home.replace("*", str(path[1]) if inside else "NAME")


def _written(key: str) -> str:
    """Write ``a.b.c`` as maps, ``a: {b: {c: ...}}``, and a single key as it is."""
    first, *rest = key.split(".")
    inner = "".join(f"{{{part}: " for part in rest) + "..." + "}" * len(rest)
    return f"`{first}: {inner}`" if rest else f"`{first}`"
