"""The schema files themselves: documented, complete, and in step with the code that relies on them."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from maintainer.policy.resolve import merge as builtin
from maintainer.policy.resolve.merge import SETTING_KEYS
from maintainer.policy.schema.formats import check_format, schema_validator
from maintainer.policy.schema.schema_keys import (
    POLICY_SCHEMA,
    PROJECT_SCHEMA,
    TESTS_SCHEMA,
    describe,
    key_names,
    load_schema,
    shown,
)


def schema_of(name: str) -> dict[str, Any]:
    description = describe(name)
    assert description is not None, name
    return description.schema


@pytest.mark.parametrize("name", [POLICY_SCHEMA, PROJECT_SCHEMA])
def test_the_schemas_are_draft_07_and_compile(name: str) -> None:
    jsonschema.Draft7Validator.check_schema(load_schema(name))
    assert load_schema(name)["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert schema_validator(name) is schema_validator(name)


@pytest.mark.parametrize("name", key_names())
def test_every_key_is_described(name: str) -> None:
    schema = schema_of(name)
    assert schema["description"].endswith(".")
    assert "*" in name or schema.get("examples")
    if "x-format" in schema:
        assert [check_format(schema["x-format"], example) for example in schema.get("examples", [])] == [
            None for _ in schema.get("examples", [])
        ]


def test_every_setting_may_be_null_to_fall_back_to_the_level_below() -> None:
    for key in SETTING_KEYS:
        assert "null" in schema_of(key)["type"]


def test_the_defaults_in_the_schema_are_those_that_hold() -> None:
    for layer in builtin.BUILT_IN_LAYERS.values():
        for keys, setting in layer.leaves.items():
            assert schema_of(".".join(keys))["default"] == setting.value
    built_in = {".".join(keys) for layer in builtin.BUILT_IN_LAYERS.values() for keys in layer.leaves}
    scalars = {
        name
        for name in key_names()
        if name.split(".")[0] in SETTING_KEYS and "default" in schema_of(name) and schema_of(name)["default"] != []
    }
    assert scalars == built_in


WORDED = {"type", "enum", "const", "examples", "pattern", "minimum", "maximum", "minLength", "maxLength", "items"} | {
    "minItems", "maxItems", "uniqueItems", "properties", "additionalProperties", "required", "propertyNames",
    "minProperties", "maxProperties", "x-format", "x-unit", "x-default", "x-aboveZero",
}  # fmt: skip
"""Keywords for which `schema_check` has words, or that have no rule."""


def keywords_in(schema: dict[str, Any]) -> set[str]:
    inner = [value for name, value in schema.items() if isinstance(value, dict) and name != "properties"]
    inner += schema.get("properties", {}).values()
    return {*schema, *(keyword for value in inner for keyword in keywords_in(value))}


@pytest.mark.parametrize("name", [POLICY_SCHEMA, PROJECT_SCHEMA, TESTS_SCHEMA])
def test_every_keyword_of_a_schema_that_is_checked_has_words(name: str) -> None:
    keywords = keywords_in(schema_validator(name).schema)
    assert {"pattern", "enum", "properties"} < keywords
    assert keywords <= WORDED


def test_a_schema_that_is_missing_says_to_install_again() -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.json is missing from the installation"):
        load_schema("none.json")


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "nothing"), (True, "`true`"), (False, "`false`"), ("a", "`a`"), ("7", '`"7"`'), (7, "`7`")],
)
def test_a_value_is_shown_as_it_would_be_written(value: object, text: str) -> None:
    assert shown(value) == text
