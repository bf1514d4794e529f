"""Laws of resolution: the highest level that says something wins, and how files are named or ordered never matters."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from maintainer.policy.project.policy_project import LoadedProject
from maintainer.policy.resolve.resolved import BUILT_IN
from maintainer.report.policy_text import block
from tests.support.policies.projects import loaded
from tests.support.suites.example_counts import examples

KEYS = {
    "limits.maxFiles": st.integers(min_value=1, max_value=9),
    "optimize.skipNewestPartitions": st.integers(min_value=0, max_value=3),
    "verify.files": st.booleans(),
    "verify.rowCount": st.sampled_from(["log", "scan", "off"]),
    "autoCompact": st.booleans(),
    "properties.team.a": st.sampled_from(["x", "y", ""]),
    "consumers": st.lists(
        st.fixed_dictionaries({"name": st.sampled_from("abc"), "maxLag": st.sampled_from(["1d", "36h"])}),
        max_size=2,
        unique_by=lambda consumer: consumer["name"],
    ),
}
UNSET = "(not written)"

level_values = st.fixed_dictionaries({key: st.just(UNSET) | st.none() | values for key, values in KEYS.items()})


def body(values: Mapping[str, object]) -> str:
    tree: dict[str, object] = {}
    for key, value in values.items():
        if value == UNSET:
            continue
        section, _, name = key.partition(".")
        if name:
            inner = tree.setdefault(section, {})
            assert isinstance(inner, dict)
            inner[name] = value
        else:
            tree[key] = value
    return "\n".join(["version: 1", *block(tree)]) + "\n"


def in_folder(files: Mapping[str, str], env: str | None = None) -> LoadedProject:
    folder = Path(tempfile.mkdtemp(prefix="maintainer-test-"))
    try:
        project = loaded(folder, files, env)
        project.resolved()
        return project
    finally:
        shutil.rmtree(folder)


def effective(project: LoadedProject, table: str) -> dict[str, object]:
    policy = project.resolve_table(table)
    return {
        "limits.maxFiles": policy.limits.max_files,
        "optimize.skipNewestPartitions": policy.optimize.skip_newest_partitions,
        "verify.files": policy.verify.files,
        "verify.rowCount": policy.verify.row_count.value,
        "autoCompact": None if policy.auto_compact is None else policy.auto_compact.enabled,
        "properties.team.a": dict(policy.properties).get("team.a"),
        "consumers": [(consumer.name, consumer.max_lag_seconds) for consumer in policy.consumers],
    }


BUILT_IN_VALUES: dict[str, object] = {
    "limits.maxFiles": None,
    "optimize.skipNewestPartitions": 0,
    "verify.files": True,
    "verify.rowCount": "scan",
    "autoCompact": None,
    "properties.team.a": None,
    "consumers": [],
}
LEVEL_FILES = (
    "maintainer.yml",
    "policies/z-low.yml",
    "policies/a-high.yml",
    "policies/_profiles/p.yml",
    "policies/t.yml",
)


@settings(max_examples=examples(200), deadline=None)
@given(levels=st.lists(level_values, min_size=5, max_size=5))
def test_the_highest_level_that_is_set_wins_key_by_key(levels: list[dict[str, object]]) -> None:
    defaults, low, high, profile, own = levels
    indented = "".join(f"  {line}\n" for line in body(defaults).splitlines()[1:])
    project = in_folder(
        {
            "maintainer.yml": f"version: 1\ndefaults:\n{indented}",
            "policies/z-low.yml": body(low) + 'match: {tables: ["s.*"]}\npriority: -1\n',
            "policies/a-high.yml": body(high) + 'match: {tables: ["*.t"]}\npriority: 7\n',
            "policies/_profiles/p.yml": body(profile),
            "policies/t.yml": body(own) + "table: s.t\nextends: [p]\n",
        }
    )
    in_low, in_high = (
        {key for key, value in values.items() if value != UNSET and value is not None} for values in (low, high)
    )
    replaced = bool(in_low) and in_low <= in_high
    unwritten = sum(values["autoCompact"] is None for values in levels)
    codes = sorted(finding.code for finding in project.diagnostics)
    assert codes == ["P323"] * unwritten + (["P358"] if replaced else [])
    expected, places = dict(BUILT_IN_VALUES), dict.fromkeys(KEYS, BUILT_IN.file)
    for file, values in zip(LEVEL_FILES, levels, strict=True):
        for key, value in values.items():
            if value != UNSET and value is not None:
                expected[key], places[key] = value, file
    if isinstance(expected["consumers"], list):
        seconds = {"1d": 86_400, "36h": 129_600}
        expected["consumers"] = [(item["name"], seconds[item["maxLag"]]) for item in expected["consumers"]]
    assert effective(project, "s.t") == expected
    origins = project.resolve_table("s.t").origins
    assert {key: origins[key].file for key in KEYS if places[key] != BUILT_IN.file} == {
        key: place for key, place in places.items() if place != BUILT_IN.file
    }


tables = st.lists(st.sampled_from(["s.a", "s.b", "r.c", "lake/d", "S.A"]), min_size=1, max_size=4)


@settings(max_examples=examples(100), deadline=None)
@given(
    names=tables,
    settings_=st.lists(level_values, min_size=8, max_size=8),
    priorities=st.lists(st.integers(min_value=0, max_value=2), min_size=3, max_size=3),
    seed=st.integers(min_value=0, max_value=2**32),
)
def test_neither_names_nor_order_of_files_matter(
    names: list[str], settings_: list[dict[str, object]], priorities: list[int], seed: int
) -> None:
    """Two tables in one file's stead, rules that disagree: also what is wrong is the same, wherever it is written."""
    files = [body(values) + f"table: {name}\nextends: [p]\n" for name, values in zip(names, settings_, strict=False)]
    globs = ("s.*", "*a", "*")
    files += [
        body(values) + f'match: {{tables: ["{glob}"]}}\npriority: {priority}\n'
        for values, glob, priority in zip(settings_[4:], globs, priorities, strict=False)
    ]
    profile = {"policies/_profiles/p.yml": body(settings_[7])}
    shuffled = list(files)
    random.Random(seed).shuffle(shuffled)
    in_order = in_folder({**{f"policies/{at}.yml": text for at, text in enumerate(files)}, **profile})
    shuffled_project = in_folder(
        {**profile, **{f"policies/x/{9 - at}/y.yml": text for at, text in enumerate(shuffled)}}
    )
    assert sorted(finding.code for finding in in_order.diagnostics) == sorted(
        finding.code for finding in shuffled_project.diagnostics
    )
    if not in_order.errors:

        def digests(project: LoadedProject) -> dict[str, str]:
            return {table.written: project.resolve_table(table.written).digest for table in project.tables}

        assert digests(in_order) == digests(shuffled_project)
