"""The schema, which editors and ``maintainer schema`` show, promises the defaults that resolution uses."""

from __future__ import annotations

import pytest

from maintainer.policy.resolve.builtin_defaults import ALWAYS, VACUUM, ZORDER, min_file_size_of
from maintainer.policy.resolve.setting_units import DURATIONS, SIZES, base_value
from maintainer.policy.schema.schema_keys import describe

BUILT_IN = {".".join(keys): s.value for layer in (ALWAYS, VACUUM, ZORDER) for keys, s in layer.leaves.items()}


@pytest.mark.parametrize(("key", "value"), BUILT_IN.items())
def test_the_schema_promises_the_built_in_default(key: str, value: object) -> None:
    description = describe(key)
    assert description is not None
    assert base_value(key, description.schema["default"]) == base_value(key, value)


@pytest.mark.parametrize("key", sorted(SIZES | DURATIONS))
def test_each_size_and_duration_is_one_in_the_schema(key: str) -> None:
    description = describe(key)
    assert description is not None
    assert description.schema["x-format"] == ("size" if key in SIZES else "duration")


@pytest.mark.parametrize(("largest", "smallest"), [(256 << 20, 192 << 20), (10, 7), (1, 1)])
def test_min_file_size_is_three_quarters(largest: int, smallest: int) -> None:
    assert min_file_size_of(largest) == smallest
