"""Nothing is done on files that the two readers judge differently."""

from __future__ import annotations

from pathlib import Path

import pytest

from maintainer.errors import ProjectError
from maintainer.policy.project.policy_project import load_project
from maintainer.policy.schema.second_reader import check_again
from maintainer.policy.yaml.yaml_reader import read_text

ROOT = Path(__file__).resolve().parents[4]


def test_the_examples_pass_both() -> None:
    documents = load_project(ROOT).documents
    assert len(documents) > 15
    check_again(documents.values())


def test_what_only_jsonschema_refuses_stops_everything() -> None:
    """Handed over unchecked, as if our own check had overlooked it."""
    document, findings = read_text("version: 1\ntable: a.b\nvacuum:\n  retention: 7\n", "policies/a.yml")
    assert findings == []
    assert document is not None
    with pytest.raises(ProjectError) as caught:
        check_again([document])
    assert (caught.value.code, caught.value.where) == ("E628", "policies/a.yml:4")
    assert caught.value.found == "7 is not of type 'string', 'null'"
