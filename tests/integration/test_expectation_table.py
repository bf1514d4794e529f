"""The table of expectations says what the installed Great Expectations says (which takes seconds to import)."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from maintainer.policy.expectations import EXPECTATIONS, NOT_FOR_POLICIES, REFUSED_EXPECTATIONS

PROBE = """
import json
from great_expectations.expectations import registry
names = registry.list_registered_expectation_implementations()
print(json.dumps({
    name: {key: field.required for key, field in registry.get_expectation_impl(name).__fields__.items()}
    for name in names
}))
"""


def test_the_table_equals_the_registry() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROBE],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={**os.environ, "GX_ANALYTICS_ENABLED": "false"},
    )
    registered: dict[str, dict[str, bool]] = json.loads(done.stdout.splitlines()[-1])
    assert set(registered) == set(EXPECTATIONS) | set(REFUSED_EXPECTATIONS)
    for name, arguments in EXPECTATIONS.items():
        fields = {key: needed for key, needed in registered[name].items() if key not in NOT_FOR_POLICIES}
        assert set(arguments.required) == {key for key, needed in fields.items() if needed}, name
        assert set(arguments.optional) == {key for key, needed in fields.items() if not needed}, name
