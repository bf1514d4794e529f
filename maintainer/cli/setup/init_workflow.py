"""The GitHub workflow of a new project."""

from __future__ import annotations

WORKFLOW = """\
# Pull requests: check the policies, and show what they would do. Main: do it.
#
# requirements.txt says where maintainer is installed from: fill that in first.
# `check` runs anywhere and needs neither Spark nor Java. `plan` and `apply` need a runner that reaches the tables
# and has Java 17 or 21: set the repository variable MAINTAINER_RUNNER to its label, and they run. Name an
# environment `prod` in the repository's settings to have every apply approved by a person.
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
    # Not for forks: what strangers propose does not run where the tables are.
    if: >-
      github.event_name == 'pull_request' && vars.MAINTAINER_RUNNER != ''
      && github.event.pull_request.head.repo.full_name == github.repository
    runs-on: ${{ vars.MAINTAINER_RUNNER }}
    timeout-minutes: 60
    steps:
      - uses: actions/checkout@v4
        with: {fetch-depth: 0}    # state:modified needs the commit to compare with
      - name: Install maintainer with Spark
        run: |
          python3 -m venv "$RUNNER_TEMP/maintainer"
          "$RUNNER_TEMP/maintainer/bin/pip" install -r requirements.txt 'maintainer[spark]'
          echo "$RUNNER_TEMP/maintainer/bin" >> "$GITHUB_PATH"
      - name: Plan what this pull request changes
        env:
          BASE: origin/${{ github.base_ref }}
        run: |
          maintainer --env prod plan -s state:modified --since "$BASE" --allow-empty -o markdown > plan.md
          cat plan.md >> "$GITHUB_STEP_SUMMARY"
      - uses: actions/upload-artifact@v4
        with: {name: plan, path: plan.md}

  comment:
    needs: plan
    runs-on: ubuntu-latest
    timeout-minutes: 10
    permissions:
      pull-requests: write
    steps:
      - uses: actions/download-artifact@v4
        with: {name: plan}
      - name: Comment on the pull request
        env:
          GH_TOKEN: ${{ github.token }}
          GH_REPO: ${{ github.repository }}
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
      - name: Install maintainer with Spark
        run: |
          python3 -m venv "$RUNNER_TEMP/maintainer"
          "$RUNNER_TEMP/maintainer/bin/pip" install -r requirements.txt 'maintainer[spark]'
          echo "$RUNNER_TEMP/maintainer/bin" >> "$GITHUB_PATH"
      - run: maintainer --env prod apply --yes -o github
      - uses: actions/upload-artifact@v4
        if: always()
        with:
          name: maintainer-run
          path: .maintainer/runs/
          if-no-files-found: ignore
          include-hidden-files: true
"""
