"""Which level wins; and the schema, which editors and ``maintainer schema`` show, promises the defaults used."""

from __future__ import annotations

import random
from datetime import date
from pathlib import Path

import pytest

from maintainer.model.plan.plan import RowCountCheck
from maintainer.policy.resolve.merge import BUILT_IN_LAYERS, base_value, min_file_size_of, spelled
from maintainer.policy.resolve.resolved import BUILT_IN, AutoCompactPolicy, Origin, base_settings
from maintainer.policy.schema.schema_keys import describe, key_names
from tests.support.policies.projects import complaints, loaded

EVERY_KEY = Path(__file__).parents[3] / "support" / "policies" / "every_key.yml"
DEFAULTS = {".".join(keys): s.value for layer in BUILT_IN_LAYERS.values() for keys, s in layer.leaves.items()}


@pytest.mark.parametrize(("key", "value"), DEFAULTS.items())
def test_the_schema_promises_the_built_in_default(key: str, value: object) -> None:
    description = describe(key)
    assert description is not None
    assert base_value(key, description.schema["default"]) == base_value(key, value)


@pytest.mark.parametrize(
    ("key", "written", "value", "spelled_again"),
    [
        ("optimize.maxFileSize", "1GiB", 1 << 30, "1GiB"),
        ("optimize.zorder.batchBytes", 10_000_000_000, 10_000_000_000, 10_000_000_000),
        ("vacuum.retention", "P1DT12H", 129_600, "1d 12h"),
        ("limits.timeout", "90m", 5_400, "1h 30m"),
        ("optimize.maxThreads", 8, 8, 8),
        ("tags", ["7d"], ["7d"], ["7d"]),
        ("properties.delta.appendOnly", True, "true", "true"),
        ("consumers", [{"name": "7d", "maxLag": "7d"}], [{"name": "7d", "maxLag": 604_800}], None),
    ],
)
def test_a_value_has_the_unit_that_the_schema_gives_its_key(
    key: str, written: object, value: object, spelled_again: object
) -> None:
    assert base_value(key, written) == value
    assert spelled(key, value) == (written if spelled_again is None else spelled_again)


def test_every_field_is_written_as_the_key_that_it_is_read_from(tmp_path: Path) -> None:
    every_key = (
        EVERY_KEY.read_text()
        .partition("\n")[2]
        .replace("autoCompact: true", "autoCompact: {minNumFiles: 5, maxFileSize: 64MiB}")
    )
    rewrite = (
        "table: s.t\noptimize: {rewrite: {files: 4, sortBy: [a]}, purge: {}, cluster: {full: true}}\n"
        "limits: {maxDeletes: 5}\nvacuum: {trash: 7d, deleteUntracked: true, untrackedEvery: 2d, untrackedAge: 40d}\n"
    )
    policies = loaded(tmp_path, {"policies/a.yml": every_key, "policies/b.yml": rewrite}).resolved()
    keys = {key for policy in policies for key, _ in base_settings(policy)}
    assert {"optimize.rewrite.files", "autoCompact", "window", "optimize.where", "limits.timeout"} <= keys
    ours = {"table.identifier", "file", "digest", "origins"}
    members = {key for key in keys if key.startswith(("properties.", "verify.expectations.", "consumers."))}
    assert members
    assert keys - ours - members <= set(key_names())


@pytest.mark.parametrize(("largest", "smallest"), [(256 << 20, 192 << 20), (10, 7), (1, 1)])
def test_min_file_size_is_three_quarters(largest: int, smallest: int) -> None:
    assert min_file_size_of(largest) == smallest


MIB = 1 << 20

LEVELS = {
    "maintainer.yml": """\
        defaults: {limits: {maxFiles: 1}}
        environments:
          dev: {overrides: {limits: {maxFiles: 6}}}
        """,
    "policies/low.yml": 'match: {tables: ["s.*"]}\npriority: 1\nlimits: {maxFiles: 2}\n',
    "policies/high.yml": 'match: {tables: ["s.*"]}\npriority: 2\nlimits: {maxFiles: 3}\n',
    "policies/_profiles/p.yml": "limits: {maxFiles: 4}\n",
    "policies/t.yml": "table: s.t\nextends: [p]\nlimits: {maxFiles: 5}\n",
}


@pytest.mark.parametrize(
    ("without", "expected", "origin"),
    [
        ((), 6, Origin("maintainer.yml", 4, 40)),
        (("env",), 5, Origin("policies/t.yml", 4, 20)),
        (("env", "table"), 4, Origin("policies/_profiles/p.yml", 2, 20)),
        (("env", "table", "profile"), 3, Origin("policies/high.yml", 4, 20)),
        (("env", "table", "profile", "high"), 2, Origin("policies/low.yml", 4, 20)),
        (("env", "table", "profile", "high", "low"), 1, Origin("maintainer.yml", 2, 31)),
    ],
)
def test_each_level_wins_over_the_one_below(
    tmp_path: Path, without: tuple[str, ...], expected: int, origin: Origin
) -> None:
    files = dict(LEVELS)
    if "table" in without:
        files["policies/t.yml"] = "table: s.t\nextends: [p]\n"
    if "profile" in without:
        files["policies/_profiles/p.yml"] = "owner: x\n"
    for rule in ("high", "low"):
        if rule in without:
            del files[f"policies/{rule}.yml"]
    policy = loaded(tmp_path, files, None if "env" in without else "dev").resolve_table("s.t")
    assert policy.limits.max_files == expected
    assert policy.origin("limits.maxFiles") == origin


def test_later_profiles_win_over_earlier_ones(tmp_path: Path) -> None:
    files = {
        "policies/_profiles/a.yml": "limits: {maxFiles: 1, maxBytes: 1MiB}\n",
        "policies/_profiles/b.yml": "limits: {maxFiles: 2}\n",
        "policies/t.yml": "table: s.t\nextends: [a, b]\n",
        "policies/u.yml": "table: s.u\nextends: [b, a]\n",
    }
    project = loaded(tmp_path, files)
    assert [policy.limits.max_files for policy in project.resolved()] == [2, 1]
    assert [policy.limits.max_bytes for policy in project.resolved()] == [MIB, MIB]


def test_false_zero_and_empty_are_values_and_null_is_not(tmp_path: Path) -> None:
    files = {
        "maintainer.yml": """\
            defaults:
              autoCompact: true
              optimize: {skipNewestPartitions: 3, quietFor: 1h}
              verify: {files: true, rowCount: log}
              consumers: [{name: a, maxLag: 1d}]
            """,
        "policies/t.yml": """\
            table: s.t
            autoCompact: false
            optimize: {skipNewestPartitions: 0, quietFor: 0s}
            verify: {files: false, rowCount: null}
            consumers: []
            """,
        "policies/u.yml": "table: s.u\nautoCompact: null\noptimize:\nverify: {files: null}\nconsumers: null\n",
    }
    set_, unset = loaded(tmp_path, files).resolved()
    assert set_.auto_compact == AutoCompactPolicy(enabled=False)
    assert (set_.optimize.skip_newest_partitions, set_.optimize.quiet_for_seconds) == (0, 0)
    assert (set_.verify.files, set_.verify.row_count, set_.consumers) == (False, RowCountCheck.LOG, ())
    assert unset.auto_compact == AutoCompactPolicy(enabled=True)
    assert (unset.optimize.skip_newest_partitions, unset.optimize.quiet_for_seconds) == (3, 3600)
    assert (unset.verify.files, len(unset.consumers)) == (True, 1)


def test_maps_merge_by_key_and_lists_replace(tmp_path: Path) -> None:
    files = {
        "maintainer.yml": "defaults: {properties: {team.a: 1, team.b: x}, consumers: [{name: a, maxLag: 1d}]}\n",
        "policies/t.yml": "table: s.t\nproperties: {team.b: true, team.c: 5}\nconsumers: [{name: b, maxLag: 2d}]\n",
    }
    policy = loaded(tmp_path, files).resolve_table("s.t")
    assert policy.properties == (("team.a", "1"), ("team.b", "true"), ("team.c", "5"))
    assert [(consumer.name, consumer.max_lag_seconds) for consumer in policy.consumers] == [("b", 172_800)]
    assert policy.origin("properties.team.a").file == "maintainer.yml"
    assert policy.origin("properties.team.b") == Origin("policies/t.yml", 3, 22)


def test_a_suspension_is_taken_whole_and_one_that_is_over_lets_the_one_below_hold(tmp_path: Path) -> None:
    files = {
        "maintainer.yml": "defaults:\n  suspend: {reason: freeze of the fleet}\n",
        "policies/all.yml": "match: {tables: ['*']}\nsuspend: {reason: migration, until: 2026-12-01}\n",
        "policies/over.yml": "table: s.t\nsuspend: {reason: load, until: 2026-11-01}\n",
    }
    suspend = loaded(tmp_path, files).resolve_table("s.t").suspend
    assert suspend is not None
    held = [suspend.on(day) for day in (date(2026, 10, 31), date(2026, 11, 1), date(2026, 12, 1))]
    assert [each and each.reason for each in held] == ["load", "migration", "freeze of the fleet"]
    files["policies/over.yml"] = "table: s.t\nsuspend: {reason: until somebody removes it}\n"
    suspend = loaded(tmp_path / "own", files).resolve_table("s.t").suspend
    assert suspend is not None
    # The day of another level ends it no more than it began it.
    assert (suspend.until, suspend.on(date(2030, 1, 1))) == (None, suspend)


def test_a_suspension_below_counts_for_the_digest(tmp_path: Path) -> None:
    own = {"policies/t.yml": "table: s.t\nsuspend: {reason: load, until: 2026-11-01}\n"}
    fleet = {"maintainer.yml": "defaults:\n  suspend: {reason: freeze}\n"}
    alone, below = (
        loaded(tmp_path / name, files).resolve_table("s.t")
        for name, files in (("alone", own), ("below", {**own, **fleet}))
    )
    assert alone.digest != below.digest


def test_built_in_defaults_hold_where_nobody_says_anything(tmp_path: Path) -> None:
    policy = loaded(tmp_path, {"policies/t.yml": "table: s.t\n"}).resolve_table("s.t")
    optimize = policy.optimize
    assert (optimize.min_file_size_bytes, optimize.max_file_size_bytes) == (192 * MIB, 256 * MIB)
    assert (optimize.max_threads, optimize.batch_size_bytes) == (8, 10 * 1024 * MIB)
    assert (optimize.max_deleted_rows_ratio, optimize.zorder, optimize.where) == (0.05, None, None)
    assert (policy.limits.timeout_seconds, policy.limits.max_bytes) == (10_800, None)
    assert (policy.vacuum, policy.auto_compact, policy.windows) == (None, None, ())
    assert policy.origin("optimize.minFileSize") == BUILT_IN
    assert policy.origin("verify.content") == BUILT_IN


def test_the_default_min_file_size_follows_the_effective_max_file_size(tmp_path: Path) -> None:
    files = {
        "policies/_profiles/p.yml": "optimize: {maxFileSize: 1GiB}\n",
        "policies/t.yml": "table: s.t\nextends: [p]\n",
    }
    policy = loaded(tmp_path, files).resolve_table("s.t")
    assert policy.optimize.min_file_size_bytes == 768 * MIB
    assert policy.origin("optimize.minFileSize") == BUILT_IN


@pytest.mark.parametrize(
    ("cluster", "sizes"),
    [("{}", (10, 15)), ("{minCubeSize: 4GiB}", (4, 6)), ("{minCubeSize: 4GiB, targetCubeSize: 5GiB}", (4, 5))],
)
def test_a_cube_is_filled_to_one_and_a_half_times_the_least(
    cluster: str, sizes: tuple[int, int], tmp_path: Path
) -> None:
    text = f"table: sales.orders\noptimize: {{cluster: {cluster}}}\n"
    found = loaded(tmp_path, {"policies/o.yml": text}).resolve_table("sales.orders").optimize.cluster
    assert (found.min_cube_size_bytes, found.target_cube_size_bytes) == tuple(size << 30 for size in sizes)


def test_a_relative_checkpoint_starts_at_the_project(tmp_path: Path) -> None:
    consumers = "[{name: a, checkpoint: chk/a}, {name: b, checkpoint: /chk/b}, {name: c, maxLag: 3d}]"
    text = f"table: sales.orders\nconsumers: {consumers}\n"
    policy = loaded(tmp_path, {"policies/o.yml": text}).resolve_table("sales.orders")
    assert [consumer.checkpoint for consumer in policy.consumers] == [f"{tmp_path}/chk/a", "/chk/b", None]
    assert [consumer.max_lag_seconds for consumer in policy.consumers] == [None, None, 259_200]


@pytest.mark.parametrize("text", ["vacuum: {}\n", "vacuum: {retention: null}\n"])
def test_vacuum_is_there_only_if_some_level_writes_the_map(tmp_path: Path, text: str) -> None:
    project = loaded(
        tmp_path, {"policies/t.yml": "table: s.t\n" + text, "policies/u.yml": "table: s.u\nvacuum: null\n"}
    )
    assert complaints(project) == ["policies/u.yml:3:1 P323"]
    written, unwritten = project.resolved()
    assert written.vacuum is not None
    assert (written.vacuum.retention_seconds, written.vacuum.every_seconds) == (604_800, 0)
    assert (written.vacuum.untracked_age_seconds, written.vacuum.delete_untracked) == (2_592_000, False)
    assert unwritten.vacuum is None


def test_windows_take_the_zone_of_the_project(tmp_path: Path) -> None:
    files = {
        "maintainer.yml": "timezone: Europe/Berlin\n",
        "policies/t.yml": "table: s.t\n"
        "window: [{from: 22:00, to: 04:00}, {days: [sun], from: 00:00, to: 01:30, timezone: UTC}]\n",
    }
    first, second = loaded(tmp_path, files).resolve_table("s.t").windows
    assert (first.days, first.start.hour, first.end.hour, first.timezone) == (
        (1, 2, 3, 4, 5, 6, 7),
        22,
        4,
        "Europe/Berlin",
    )
    assert (second.days, second.end.minute, second.timezone) == ((7,), 30, "UTC")


def test_the_digest_depends_on_effective_values_and_on_nothing_else(tmp_path: Path) -> None:
    first = loaded(tmp_path / "one", {"policies/t.yml": "table: s.t\noptimize: {maxFileSize: 1GiB}\n"})
    other = loaded(
        tmp_path / "other",
        {
            "policies/x/renamed.yml": "# a comment\ntable: S.`t`\nextends: [p]\n",
            "policies/_profiles/p.yml": "optimize: {maxFileSize: 1024MiB, maxThreads: 8}\n",
        },
    )
    changed = loaded(tmp_path / "changed", {"policies/t.yml": "table: s.t\noptimize: {maxFileSize: 1025MiB}\n"})
    digests = [project.resolve_table("s.t").digest for project in (first, other, changed)]
    assert digests[0] == digests[1] != digests[2]
    assert digests[0].startswith("sha256:")
    assert len(digests[0]) == 71


def test_a_word_takes_the_place_of_a_whole_map_and_a_map_of_a_word(tmp_path: Path) -> None:
    files = {
        "policies/_profiles/map.yml": "autoCompact: {maxFileSize: 64MiB}\n",
        "policies/_profiles/off.yml": "autoCompact: false\n",
        "policies/a.yml": "table: s.a\nextends: [map]\nautoCompact: false\n",
        "policies/b.yml": "table: s.b\nextends: [off]\nautoCompact: {maxFileSize: 32MiB}\n",
        "policies/c.yml": "table: s.c\nextends: [map]\nautoCompact: {minFileSize: 1MiB}\n",
    }
    policies = {policy.table.identifier: policy.auto_compact for policy in loaded(tmp_path, files).resolved()}
    assert policies == {
        "s.a": AutoCompactPolicy(False),
        "s.b": AutoCompactPolicy(True, max_file_size_bytes=32 << 20),
        "s.c": AutoCompactPolicy(True, min_file_size_bytes=1 << 20, max_file_size_bytes=64 << 20),
    }


def test_tags_of_all_levels_add_up(tmp_path: Path) -> None:
    files = {
        "maintainer.yml": "defaults: {tags: [all]}\n",
        "policies/_profiles/p.yml": "tags: [small, all]\n",
        "policies/a.yml": 'match: {tables: ["s.*"]}\ntags: [ruled]\n',
        "policies/b.yml": 'match: {tables: ["s.t"]}\ntags: [ruled-too]\n',
        "policies/by_tag.yml": "match: {tags: [small]}\npriority: 5\nowner: by-profile\n",
        "policies/by_rule.yml": "match: {tags: [ruled]}\npriority: 6\nowner: by-the-tag-of-a-rule\n",
        "policies/t.yml": "table: s.t\nextends: [p]\ntags: [own, small]\n",
    }
    project = loaded(tmp_path, files)
    assert not project.errors
    [policy] = project.resolved()
    assert policy.tags == ("all", "ruled", "ruled-too", "small", "own")
    assert policy.owner == "by-the-tag-of-a-rule"
    setting = next(project.each_resolution()).merged.get("tags")
    assert setting is not None
    assert setting.below is not None
    assert (setting.origin.file, setting.below.value) == ("policies/t.yml", list(policy.tags[:-1]))
    # Whether a rule reaches anything is another question than whether its settings are replaced.
    assert [(finding.code, finding.file) for finding in project.diagnostics] == [("P358", "policies/by_tag.yml")]


FLEET = {
    "maintainer.yml": "roots: [lake]\n",
    "policies/lake.yml": "match: {tables: ['lake/*']}\nmanage: true\ntags: [nightly]\nlimits: {maxFiles: 7}\n",
    "policies/_fleet/nightly.yml": "match: {tags: [nightly]}\npriority: 1\nlimits: {timeout: 2h}\ntags: [fleet]\n",
    "policies/_fleet/last.yml": "match: {tags: [fleet]}\npriority: 2\nvacuum: {retention: 14d}\n",
}


def test_a_table_that_gets_a_file_of_its_own_keeps_the_rules_by_tag(tmp_path: Path) -> None:
    """Its file replaces what it sets; the rule that managed it, and those that match its tags, supply the others."""
    without = loaded(tmp_path / "a", FLEET).resolve_table("lake/t05")
    own = "table: lake/t05\ntags: [gold]\noptimize: {zorder: {columns: [a]}}\n"
    project = loaded(tmp_path / "b", {**FLEET, "policies/t05.yml": own})
    assert not project.errors
    policy = project.resolve_table("lake/t05")
    assert without.tags == ("nightly", "fleet")
    assert policy.tags == ("nightly", "fleet", "gold")
    for each in (without, policy):
        assert (each.limits.timeout_seconds, each.limits.max_files) == (7200, 7)
        assert each.vacuum is not None
        assert each.vacuum.retention_seconds == 14 * 86_400
    assert policy.optimize.zorder is not None


def test_a_tag_of_the_defaults_is_found_and_none_is_given_to_oneself(tmp_path: Path) -> None:
    files = {
        "maintainer.yml": "defaults: {tags: [all]}\n",
        "policies/by_all.yml": "match: {tags: [all]}\nlimits: {maxFiles: 3}\n",
        "policies/itself.yml": "match: {tags: [own]}\ntags: [own]\nowner: itself\n",
        "policies/one.yml": "match: {tags: [two]}\ntags: [one]\nowner: each-other\npriority: 1\n",
        "policies/two.yml": "match: {tags: [one]}\ntags: [two]\n",
        "policies/t.yml": "table: s.t\n",
    }
    project = loaded(tmp_path, files)
    policy = project.resolve_table("s.t")
    assert (policy.tags, policy.owner, policy.limits.max_files) == (("all",), None, 3)
    unreached = sorted(finding.file for finding in project.diagnostics if finding.code == "P357")
    assert unreached == ["policies/itself.yml", "policies/one.yml", "policies/two.yml"]


def test_which_rules_reach_a_table_does_not_depend_on_their_order(tmp_path: Path) -> None:
    """Compared with adding one rule after the other, from any end, until none is left that may be added."""
    tags = "abcd"
    rules = [(needed, given) for needed in ("", *tags) for given in tags if needed != given]
    rng = random.Random(7)
    for number in range(60):
        chosen = rng.sample(rules, rng.randint(1, 6))
        priorities = rng.sample(range(100), len(chosen))
        own = {tag for tag in tags if rng.random() < 0.25}
        files = {"policies/t.yml": f"table: s.t\ntags: [x{''.join(f', {tag}' for tag in sorted(own))}]\n"}
        for at, ((needed, given), priority) in enumerate(zip(chosen, priorities, strict=True)):
            match = f"{{tags: [{needed}]}}" if needed else "{tables: ['s.*']}"
            files[f"policies/r{at}.yml"] = f"match: {match}\ntags: [{given}]\npriority: {priority}\n"
        carried, reached = set(own), set[int]()
        while more := {at for at, (needed, _) in enumerate(chosen) if not needed or needed in carried} - reached:
            at = rng.choice(sorted(more))
            reached.add(at)
            carried.add(chosen[at][1])
        project = loaded(tmp_path / str(number), files)
        found = {rule.document.file for rule in project.rules_by_file["policies/t.yml"]}
        assert found == {f"policies/r{at}.yml" for at in reached}
        assert set(project.resolve_table("s.t").tags) == {"x", *carried}
