"""Codes of findings that concern several files of a project together; see ``maintainer.policy.codes``."""

from __future__ import annotations

CROSS_FILE: dict[str, str] = {
    "P350": "two files for one table",
    "P351": "unknown profile",
    "P352": "two profiles with one name",
    "P353": "rules of one priority disagree",
    "P354": "an environment variable cannot be used",
    "P355": "a folder that is a link",
    "P360": "a policy test fails",
    "P361": "a policy test of a table without a policy",
}
