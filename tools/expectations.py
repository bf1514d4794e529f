"""Writes which expectations there are, and their arguments: ``python -m tools.expectations`` from the repository root.

Great Expectations takes three seconds to import, too long for checking a file. What the installed one registers is
kept in ``schemas/expectations.json``; a nightly test holds the file and the package together.
"""

from __future__ import annotations

import json
from pathlib import Path

from maintainer.policy.schema.known_expectations import NOT_FOR_POLICIES, REFUSED_EXPECTATIONS, WITHOUT_SPARK

FILE = Path(__file__).parent.parent / "schemas" / "expectations.json"


def main() -> None:
    """Write the file, one expectation a line."""
    from great_expectations.expectations import registry

    lines = []
    for name in sorted(registry.list_registered_expectation_implementations()):
        if name in REFUSED_EXPECTATIONS or name in WITHOUT_SPARK:
            continue
        fields = registry.get_expectation_impl(name).__fields__
        known = {key: field.required for key, field in fields.items() if key not in NOT_FOR_POLICIES}
        required = [key for key, needed in known.items() if needed]
        arguments = {"required": required, "optional": [key for key in known if key not in required]}
        lines.append(f"  {json.dumps(name)}: {json.dumps(arguments)}")
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
