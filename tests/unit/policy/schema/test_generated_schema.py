"""What the schemas say of settings is what the models say: each default, bound, unit and text has one keeper."""

from __future__ import annotations

from typing import Any

import pytest

from maintainer.policy.schema.schema_keys import shipped_text
from tools import policy_schema


@pytest.mark.parametrize("name", [policy_schema.POLICY, policy_schema.PROJECT])
def test_the_committed_schema_is_the_one_of_the_models(name: str) -> None:
    assert shipped_text(name) == policy_schema.text_of(dict(policy_schema.documents())[name])


@pytest.mark.parametrize(
    ("keys", "keyword", "value"),
    [
        (("optimize", "maxFileSize"), "default", "256MiB"),
        (("optimize", "maxThreads"), "maximum", 256),
        (("vacuum", "retention"), "x-unit", "duration; `7d`, `36h`, `1d 12h`, `P7D`"),
        (("limits", "maxBytes"), "x-default", "no limit"),
        (("suspend", "reason"), "type", "string"),
        (("vacuum", "allowLargeDelete"), "enum", [True, False, "rewritten", None]),
    ],
)
def test_a_setting_says_it_in_one_place(keys: tuple[str, ...], keyword: str, value: object) -> None:
    schema: dict[str, Any] = {"properties": dict(policy_schema.sections())}
    for key in keys:
        schema = schema["properties"][key]
    assert schema[keyword] == value
    assert schema["description"].endswith(".")
