"""The files of a new project, as ``maintainer init`` writes them."""

from __future__ import annotations

from maintainer.cli.setup.init_workflow import WORKFLOW
from maintainer.policy.schema.schema_keys import POLICY_SCHEMA, PROJECT_SCHEMA, TESTS_SCHEMA, schema_text

_PROJECT = """\
# yaml-language-server: $schema=schemas/project.schema.json
version: 1

# What holds for every table, below rules, profiles and the table's own file.
defaults:
  verify:
    rowCount: scan
    content: fingerprint

timezone: UTC
maxPlanAge: 24h                   # a saved plan older than this is refused

limits:                           # of a whole run
  maxFailures: 3

# Where runs are remembered. On a shared fleet: "${env:LAKE}/_maintainer/ledger"
state: .maintainer/ledger

environments:
  prod: {}
  dev:
    overrides:
      limits: {maxBytes: 10GiB}
"""

_POLICY = """\
# yaml-language-server: $schema=../../schemas/policy.schema.json
# An example: put the name of one of your tables, or a path such as /lake/orders, below.
# Everything left out has a default: `maintainer explain sales.orders` prints every value and its origin.
version: 1
table: sales.orders
owner: team-sales
tags: [nightly]

optimize:
  minFileSize: 64MiB              # files smaller than this are compacted
  maxFileSize: 256MiB             # size of the files written
  when: {minSmallFiles: 20}       # ... if there are this many

vacuum:
  retention: 7d
  every: 7d
"""

_TEST = """\
# yaml-language-server: $schema=../../schemas/tests.schema.json
# Tests of policies: given a table with these files, expect these steps. `maintainer validate --tests`, no Spark.
version: 1
tests:
  - name: twenty small files are worth a rewrite
    table: sales.orders
    given:
      files: [{count: 20, size: 8MiB}]
    expect:
      steps: [{action: compact, files: 20, writes: 1}]

  - name: nineteen are not
    table: sales.orders
    given:
      files: [{count: 19, size: 8MiB}]
    expect:
      steps: []
"""

_RULE = """\
# yaml-language-server: $schema=../../schemas/policy.schema.json
# A rule: settings for every table whose name matches and that a file names. The table's own file wins.
version: 1
match:
  tables: ["bronze.*"]
priority: 10
optimize: {maxFileSize: 512MiB}
vacuum: {retention: 14d, every: 7d}
"""

_PRE_COMMIT = """\
# Checks the policies before every commit: `pip install -r requirements.txt pre-commit && pre-commit install`.
# Needs `maintainer` on the PATH, not Spark. Without it there, pre-commit can install it by itself from the
# repository of maintainer: `repo:` its URL, `rev:` a commit, `hooks: [{id: maintainer-validate}]`.
repos:
  - repo: local
    hooks:
      - id: maintainer-validate
        name: validate maintainer policies
        entry: maintainer validate --strict -o concise
        language: system
        files: ^(policies/.*\\.ya?ml|maintainer\\.yml)$
        pass_filenames: false     # rules and duplicates need the whole project
        require_serial: true
"""

_VSCODE = """\
{
  "yaml.schemas": {
    "./schemas/project.schema.json": "maintainer.yml",
    "./schemas/policy.schema.json": "policies/**/*.{yml,yaml}",
    "./schemas/tests.schema.json": "policies/_tests/**/*.{yml,yaml}"
  }
}
"""

_GITIGNORE = """\
.maintainer/
"""

_REQUIREMENTS = """\
# Where the workflow installs maintainer from, pinned. Checking policies needs no more than this line; the jobs that
# plan and apply add the extra `spark` to it.
# Name the place: a bare `maintainer==0.1` would take whatever package of that name a public index hands out.
#   maintainer @ git+https://git.example.com/data/maintainer@<full commit id>
#   maintainer @ https://files.example.com/maintainer-0.1.0-py3-none-any.whl#sha256=<hash>
# or, from an index of your own and from no other:
#   --index-url https://pypi.example.com/simple
#   maintainer==0.1.0
{requirement}
"""


def project_files(requirement: str) -> dict[str, str]:
    """Return path (posix, relative to the project) and content of every file of a new project.

    Args:
        requirement: The line of requirements.txt that installs maintainer.
    """
    return {
        "maintainer.yml": _PROJECT,
        "policies/sales/orders.yml": _POLICY,
        "policies/_fleet/bronze.yml": _RULE,
        "policies/_tests/orders.yml": _TEST,
        f"schemas/{POLICY_SCHEMA}": schema_text(POLICY_SCHEMA),
        f"schemas/{PROJECT_SCHEMA}": schema_text(PROJECT_SCHEMA),
        f"schemas/{TESTS_SCHEMA}": schema_text(TESTS_SCHEMA),
        ".github/workflows/maintainer.yml": WORKFLOW,
        ".pre-commit-config.yaml": _PRE_COMMIT,
        ".vscode/settings.json": _VSCODE,
        ".gitignore": _GITIGNORE,
        "requirements.txt": _REQUIREMENTS.format(requirement=requirement),
    }
