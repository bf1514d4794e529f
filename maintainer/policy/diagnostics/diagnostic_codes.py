"""List the codes of findings in policy files; ``docs/codes.md`` explains them.

A code is never given another meaning and never used again after it is gone. ``P3xx`` up to P349 concern one
file; from P350 on they concern several files together.
"""

from __future__ import annotations

READING: dict[str, str] = {
    "Y101": "the file cannot be read",
    "Y102": "not a regular file, or reached through a link",
    "Y103": "the file is larger than 256 KiB",
    "Y104": "the file is not UTF-8",
    "Y105": "a control character",
    "Y106": "a tab",
    "Y107": "not YAML",
    "Y108": "a duplicate key",
    "Y109": "an anchor, an alias or a merge key",
    "Y110": "a tag",
    "Y111": "several documents in one file",
    "Y112": "the file is empty",
    "Y113": "the file is not a map",
    "Y114": "a key that is not text",
    "Y115": "nested too deeply",
    "Y116": "too many values",
    "Y117": "a number that can be read in two ways",
    "Y118": "a number that is too large",
    "Y119": "infinity or not-a-number",
    "Y120": "text that must be quoted",
    "Y121": "a second `: ` on one line",
    "Y122": "a YAML directive",
}

SCHEMA: dict[str, str] = {
    "P201": "unknown key",
    "P202": "missing key",
    "P203": "wrong type",
    "P204": "not one of the allowed values",
    "P205": "not written in the right form",
    "P206": "outside the allowed range",
    "P207": "an item twice in a list",
    "P208": "a key that does not belong in this file",
    "P209": "unknown version of the format",
}

MEANING: dict[str, str] = {
    "P301": "a decimal unit that Spark reads as binary",
    "P302": "minFileSize is larger than maxFileSize",
    "P303": "compacted files may count as small again",
    "P304": "retention below seven days",
    "P305": "retention below a consumer's lag",
    "P306": "Z-order columns",
    "P307": "a value out of range",
    "P308": "a window that never opens or is unclear",
    "P309": "an environment variable in a policy",
    "P310": "a partition predicate that cannot be used",
    "P311": "unknown expectation",
    "P312": "not supported yet",
    "P313": "not a date",
    "P314": "unknown time zone",
    "P315": "a table property that another key manages",
    "P316": "an expectation that cannot be run",
    "P317": "a consumer that says nothing",
    "P318": "a value that Delta would refuse",
    "P319": "rewrites that exclude one another",
    "P320": "a table property that keeps too little",
}

TITLES: dict[str, str] = {**READING, **SCHEMA, **MEANING}
"""Every code of a single file with its title."""

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
