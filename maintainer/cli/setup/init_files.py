"""The files of a new project, as ``maintainer init`` writes them; their texts are in ``new_project``."""

from __future__ import annotations

from pathlib import Path

from maintainer.policy.schema.schema_keys import POLICY_SCHEMA, PROJECT_SCHEMA, TESTS_SCHEMA, schema_text

_TEXTS = Path(__file__).parent / "new_project"
_FILES = {
    "maintainer.yml": "maintainer.yml",
    "policies/sales/orders.yml": "orders.yml",
    "policies/_fleet/bronze.yml": "bronze_rule.yml",
    "policies/_tests/orders.yml": "orders_tests.yml",
    **{f"schemas/{name}": name for name in (POLICY_SCHEMA, PROJECT_SCHEMA, TESTS_SCHEMA)},
    ".github/workflows/maintainer.yml": "workflow.yml",
    ".pre-commit-config.yaml": "pre_commit.yml",
    ".vscode/settings.json": "vscode_settings.json",
    ".gitignore": "gitignore.txt",
    "requirements.txt": "requirements.txt",
}
"""Path in the project, and the text's name. None of the names has a meaning to Git or to a tool where it lies."""


def project_files(requirement: str) -> dict[str, str]:
    """Return path (posix, relative to the project) and content of every file of a new project.

    ``requirement`` is the line of requirements.txt that installs maintainer.
    """
    files = {path: _text(name) for path, name in _FILES.items()}
    files["requirements.txt"] = files["requirements.txt"].format(requirement=requirement)
    return files


def _text(name: str) -> str:
    return schema_text(name) if name.endswith(".schema.json") else (_TEXTS / name).read_text(encoding="utf-8")
