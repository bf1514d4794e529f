"""The files of a new project, as ``maintainer init`` writes them."""

from __future__ import annotations

from maintainer import __version__
from maintainer.policy.schema_files import POLICY_SCHEMA, PROJECT_SCHEMA, TESTS_SCHEMA, schema_text

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

_WORKFLOW = """\
# Pull requests: check the policies, and show what they would do. Main: do it.
#
# `check` runs anywhere and needs neither Spark nor Java. `plan` and `apply` need a runner that reaches the tables
# and has Java 17: set the repository variable MAINTAINER_RUNNER to its label, and they run. Name an environment
# `prod` in the repository's settings to have every apply approved by a person.
name: maintainer

on:
  pull_request:
    paths: ["policies/**", "maintainer.yml", "requirements.txt", ".github/workflows/maintainer.yml"]
  push:
    branches: [main]
  schedule:
    - cron: "0 1 * * *"
  workflow_dispatch:

permissions:
  contents: read

jobs:
  check:
    runs-on: ubuntu-latest
    timeout-minutes: 10
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with: {python-version: "3.12"}
      - run: pip install -r requirements.txt
      - run: maintainer validate --strict --tests -o github

  plan:
    needs: check
    if: github.event_name == 'pull_request' && vars.MAINTAINER_RUNNER != ''
    runs-on: ${{ vars.MAINTAINER_RUNNER }}
    timeout-minutes: 60
    permissions:
      contents: read
      pull-requests: write
    steps:
      - uses: actions/checkout@v4
        with: {fetch-depth: 0}    # state:modified needs the commit to compare with
      - run: pip install -r requirements.txt
      - name: Plan what this pull request changes
        env:
          BASE: origin/${{ github.base_ref }}
        run: |
          maintainer plan -s state:modified --since "$BASE" --allow-empty -o markdown > plan.md
          cat plan.md >> "$GITHUB_STEP_SUMMARY"
      - name: Comment on the pull request
        env:
          GH_TOKEN: ${{ github.token }}
          NUMBER: ${{ github.event.pull_request.number }}
        run: gh pr comment "$NUMBER" --body-file plan.md --edit-last --create-if-none

  apply:
    needs: check
    if: github.ref == 'refs/heads/main' && github.event_name != 'pull_request' && vars.MAINTAINER_RUNNER != ''
    runs-on: ${{ vars.MAINTAINER_RUNNER }}
    environment: prod
    concurrency:                  # one at a time, and a run that has begun is never cancelled
      group: maintainer-apply
      cancel-in-progress: false
    steps:
      - uses: actions/checkout@v4
      - run: pip install -r requirements.txt
      - run: maintainer --env prod apply --yes -o github
      - uses: actions/upload-artifact@v4
        if: always()
        with:
          name: maintainer-run
          path: .maintainer/runs/
          if-no-files-found: ignore
          include-hidden-files: true
"""

_PRE_COMMIT = """\
# Checks the policies before every commit: `pre-commit install`. Needs `maintainer` on the PATH, not Spark.
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

_REQUIREMENTS = f"""\
# Where you get it from is yours to say: an index of your own, a wheel, or git+https://...@<commit>
maintainer=={__version__}
"""


def project_files() -> dict[str, str]:
    """Return path (posix, relative to the project) and content of every file of a new project."""
    return {
        "maintainer.yml": _PROJECT,
        "policies/sales/orders.yml": _POLICY,
        "policies/_fleet/bronze.yml": _RULE,
        "policies/_tests/orders.yml": _TEST,
        f"schemas/{POLICY_SCHEMA}": schema_text(POLICY_SCHEMA),
        f"schemas/{PROJECT_SCHEMA}": schema_text(PROJECT_SCHEMA),
        f"schemas/{TESTS_SCHEMA}": schema_text(TESTS_SCHEMA),
        ".github/workflows/maintainer.yml": _WORKFLOW,
        ".pre-commit-config.yaml": _PRE_COMMIT,
        ".vscode/settings.json": _VSCODE,
        ".gitignore": _GITIGNORE,
        "requirements.txt": _REQUIREMENTS,
    }
