"""What jsonschema alone refuses is a finding, and what it accepts is none: no error is lost on the way to our words."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource

from maintainer.policy.schema.schema_check import DocumentKind, check_schema
from maintainer.policy.schema.schema_keys import POLICY_SCHEMA, PROJECT_SCHEMA, describe, key_names, load_schema
from maintainer.policy.yaml.yaml_document import YamlDocument
from maintainer.policy.yaml.yaml_reader import read_text

ONLY_OURS = {"P205", "P301", "P310", "P311", "P313", "P314", "P316"}
"""Codes of forms and names that a JSON Schema can say only in part; each is looked at in its own test."""


RESOURCES = Registry().with_resources(
    (name, Resource.from_contents(load_schema(name))) for name in (POLICY_SCHEMA, PROJECT_SCHEMA)
)
STRICT = jsonschema.Draft7Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
PLAIN: Any = jsonschema.validators.extend(jsonschema.Draft7Validator, type_checker=STRICT)  # type: ignore[no-untyped-call]
VALIDATORS = {name: PLAIN(load_schema(name), registry=RESOURCES) for name in (POLICY_SCHEMA, PROJECT_SCHEMA)}
"""The schemas as they are on disk, with references and without keywords of ours."""


def read(data: dict[str, Any], file: str) -> YamlDocument:
    document, findings = read_text(json.dumps(data), file)
    assert findings == []
    assert document is not None
    return document


def good_value(schema: dict[str, Any], rng: random.Random) -> object:
    """Take one of the examples, or the default, of a key."""
    return copy.deepcopy(
        rng.choice([*schema.get("examples", []), *([schema["default"]] if "default" in schema else [])] or [None])
    )


def a_policy(rng: random.Random, prefix: str = "") -> dict[str, Any]:
    """Build a policy out of examples of its keys, then damage some of them."""
    data: dict[str, Any] = {"version": 1}
    names = [name for name in key_names() if "*" not in name]
    for name in rng.sample(names, 12):
        description = describe(name)
        assert description is not None
        inner: Any = data
        *parents, last = name.split(".")
        for part in parents:
            inner = inner.setdefault(part, {}) if isinstance(inner, dict) else None
        if isinstance(inner, dict):
            inner[last] = good_value(description.schema, rng)
            if rng.random() < 0.15:
                inner[last] = rng.choice(
                    [None, True, 0, -1, 2**40, 0.5, 1.5, "", "x", "1d", "1MiB", [], [1], ["a", "a"], {}]
                )
            if rng.random() < 0.05:
                inner[rng.choice(["x", "Every", "mode "])] = 1
    return data


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", [POLICY_SCHEMA, PROJECT_SCHEMA])
def test_both_agree_on_validity(seed: int, name: str) -> None:
    rng = random.Random(seed)
    file, kind = ("t.yml", DocumentKind.POLICY) if name == POLICY_SCHEMA else ("maintainer.yml", DocumentKind.PROJECT)
    verdicts = {True: 0, False: 0}
    for _ in range(150):
        data = a_policy(rng)
        if name == POLICY_SCHEMA:
            data["table"] = "a.b"
            data.pop("match", None)
            data.pop("priority", None)
        else:
            data = {key: value for key, value in data.items() if rng.random() < 0.9 or key == "version"}
        theirs = VALIDATORS[name].is_valid(data)
        ours = check_schema(read(data, file), kind)
        verdicts[theirs] += 1
        if theirs:
            assert {diagnostic.code for diagnostic in ours} <= ONLY_OURS, (data, ours)
        else:
            assert any(diagnostic.is_error for diagnostic in ours), (data, list(VALIDATORS[name].iter_errors(data)))
    assert verdicts[False] > 20


@pytest.mark.parametrize("name", [name for name in key_names() if "*" not in name])
def test_every_example_and_default_is_valid(name: str) -> None:
    description = describe(name)
    assert description is not None
    validator = VALIDATORS[POLICY_SCHEMA].evolve(schema=description.schema)
    for value in [
        *description.schema.get("examples", []),
        *([description.schema["default"]] if "default" in description.schema else []),
    ]:
        assert validator.is_valid(value), value
