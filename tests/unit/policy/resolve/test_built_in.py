"""The schema, which editors and ``maintainer schema`` show, promises the defaults that resolution uses."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.policy.resolve.builtin_defaults import ALWAYS, VACUUM, ZORDER, min_file_size_of
from maintainer.policy.resolve.policy_fields import written_settings
from maintainer.policy.resolve.setting_units import base_value, spelled
from maintainer.policy.schema.schema_keys import describe, key_names
from tests.support.policies.projects import loaded

EVERY_KEY = Path(__file__).parents[3] / "support" / "policies" / "every_key.yml"
BUILT_IN = {".".join(keys): s.value for layer in (ALWAYS, VACUUM, ZORDER) for keys, s in layer.leaves.items()}


@pytest.mark.parametrize(("key", "value"), BUILT_IN.items())
def test_the_schema_promises_the_built_in_default(key: str, value: object) -> None:
    description = describe(key)
    assert description is not None
    assert base_value(key, description.schema["default"]) == base_value(key, value)


@pytest.mark.parametrize(
    ("key", "written", "value", "spelled_again"),
    [
        ("optimize.maxFileSize", "1GiB", 1 << 30, "1GiB"),
        ("optimize.zorder.batchBytes", 10_000_000_000, 10_000_000_000, "9765625KiB"),
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
    keys = {key for policy in policies for key, _ in written_settings(policy)}
    assert {"optimize.rewrite.files", "autoCompact", "window", "optimize.where", "limits.timeout"} <= keys
    ours = {"table.identifier", "file", "digest", "origins", "properties"}
    of_two_keys = {"vacuum.allowRewritten", "optimize.zorder.honourTableProperties"}
    assert keys - ours - of_two_keys <= set(key_names())


@pytest.mark.parametrize(("largest", "smallest"), [(256 << 20, 192 << 20), (10, 7), (1, 1)])
def test_min_file_size_is_three_quarters(largest: int, smallest: int) -> None:
    assert min_file_size_of(largest) == smallest
