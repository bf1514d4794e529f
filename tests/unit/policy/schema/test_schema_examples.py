"""Every example of the schema, written as messages and pages write it, is a valid file."""

from __future__ import annotations

from typing import Any

import pytest

from maintainer.policy.schema.schema_keys import describe, key_names, written
from maintainer.policy.yaml.yaml_reader import read_text
from tests.support.policies.policy_reading import findings_of

EXAMPLES = [
    (name, example)
    for name in key_names()
    if (description := describe(name)) is not None
    for example in description.schema.get("examples", ())
]


@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=[f"{name}-{written(value)}" for name, value in EXAMPLES])
def test_an_example_is_read_as_the_value_that_it_is(name: str, example: object) -> None:
    document, findings = read_text(f"{written(name.rpartition('.')[2])}: {written(example)}\n", "policies/t.yml")
    assert findings == []
    assert document is not None
    assert list(document.data.values()) == [example]


def _in_its_place(name: str, value: object) -> dict[str, Any]:
    """Put a value into the maps and lists around it, with the keys that each of them needs."""
    home, _, key = name.rpartition(".")
    data: dict[str, Any] = {"any-name" if key == "*" else key: value}
    description = describe(home) if home else None
    if description is None:
        return data
    items = description.schema.get("items")
    schema = items if isinstance(items, dict) else description.schema
    for needed in schema.get("required", ()):
        data.setdefault(needed, schema["properties"][needed]["examples"][0])
    if data.get("type") == "expect_column_values_to_not_be_null":
        data["column"] = "order_id"
    if home.endswith("consumers"):
        data["maxLag"] = data.get("maxLag", "3d")
    return _in_its_place(home, [data] if isinstance(items, dict) else data)


@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=[f"{name}-{written(value)}" for name, value in EXAMPLES])
def test_an_example_in_its_place_is_valid(name: str, example: object) -> None:
    data = _in_its_place(name, example)
    description = describe(name)
    assert description is not None
    in_project = description.file == "maintainer.yml"
    data = {"version": 1, **({} if in_project or "match" in data or "table" in data else {"table": "a.b"}), **data}
    if "priority" in data or "manage" in data:  # of a rule, as are the criteria beside `exclude`
        data = {key: value for key, value in data.items() if key != "table"} | {"match": {"tables": ["a.*"]}}
    if isinstance(data.get("match"), dict):
        data["match"] = {"tables": ["a.*"], **data["match"]}
    text = "".join(f"{written(key)}: {written(value)}\n" for key, value in data.items())
    findings = findings_of(text, "maintainer.yml" if in_project else "policies/t.yml")
    assert [(finding.code, finding.message) for finding in findings if finding.is_error] == [], text
