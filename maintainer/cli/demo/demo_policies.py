"""The demo's policy files: short, commented, and each with one idea of the policy format."""

from __future__ import annotations

from pathlib import Path

PROJECT = """\
# One file for the project. Everything else is in policies/, one file per table.
version: 1
timezone: America/New_York

# What holds for every table unless a rule, a profile or the table's own file says otherwise.
defaults:
  owner: demo
  verify: {rowCount: scan, content: fingerprint, files: true}
  optimize: {quietAfterUpdates: 0s}   # nobody else writes to the demo's tables; without this a table is left
                                      # alone for 10 minutes after each DELETE, UPDATE or MERGE

# Bounds of one whole run; a plan beyond them is refused before anything is touched.
limits: {maxBytes: 20GiB, maxFailures: 3}
"""

RULE = """\
# A rule: it has `match:` instead of `table:` and reaches every table that its globs name.
version: 1
match: {tables: ["lake/*"]}
priority: 10                   # among rules, the higher number wins

vacuum:
  retention: 7d                # a replaced file is kept this long; readers of old versions need it
limits: {timeout: 15m}
"""

PROFILE = """\
# A profile: settings with a name, for tables that say `extends: [small-files]`.
version: 1
description: Tables that many small appends write.

optimize:
  maxFileSize: 128MiB          # size of the files that are written; smaller than 3/4 of it counts as small
  maxThreads: 2                # so many files are rewritten at the same time
"""

FLIGHTS = """\
version: 1
table: lake/flights            # a path relative to the project; a catalog name works as well
extends: [small-files]
description: All flights out of New York City in 2013, partitioned by month, loaded in small pieces.
tags: [nightly, nyc]

properties:                    # held as written here: drift is shown by `plan` and corrected by `apply`
  delta.logRetentionDuration: interval 14 days
"""

PLANES = """\
version: 1
table: lake/planes
extends: [small-files]
description: One row per aircraft, by tail number.
tags: [nightly, nyc]

autoCompact: true              # the table property: writers compact a little after each commit

verify:
  content: exact               # a small table: compare all rows, not only their fingerprint
  expectations:                # Great Expectations by name, run on the new version after a change
    - {type: expect_column_values_to_not_be_null, column: tailnum}
"""

AIRPORTS = """\
# The smallest policy there is. The rule in policies/_lake.yml adds the rest.
version: 1
table: lake/airports
"""

AIRLINES = """\
version: 1
table: lake/airlines
"""

WEATHER = """\
version: 1
table: lake/weather
description: Hourly weather at three airports. It was replaced as a whole ten days ago.
tags: [nightly, nyc]

vacuum:
  retention: 8d                # longer than the rule's 7d; shorter would need `allowShortRetention: true`
  allowLargeDelete: true       # it was replaced as a whole: more than half of its bytes go, and that is meant
consumers:                     # who reads old versions: a vacuum keeps what they need
  - {name: delay-dashboard, maxLag: 2d}
"""

LINEITEM = """\
version: 1
table: lake/lineitem
owner: team-warehouse
description: Order lines, appended in order of ship day, looked up by part and by order.
tags: [nightly, tpch]

optimize:
  maxFileSize: 512KiB          # tiny, so that this tiny table has enough files to skip some
  zorder:
    columns: [l_partkey, l_orderkey]   # the two that look-ups filter by
    mode: full
"""

ORDERS = """\
version: 1
table: lake/orders
owner: team-warehouse
description: Orders; customers' requests delete rows here and there, which leaves deletion vectors.
tags: [nightly, tpch]

optimize:
  minFileSize: 64KiB           # its files are large enough for this table ...
  maxFileSize: 1MiB
  maxDeletedRowsRatio: 0.05    # ... but rewrite those with more than 5 % of their rows soft-deleted
"""

FILES = {
    "maintainer.yml": PROJECT,
    "policies/_lake.yml": RULE,
    "policies/_profiles/small-files.yml": PROFILE,
    "policies/nyc/flights.yml": FLIGHTS,
    "policies/nyc/planes.yml": PLANES,
    "policies/nyc/airports.yml": AIRPORTS,
    "policies/nyc/airlines.yml": AIRLINES,
    "policies/nyc/weather.yml": WEATHER,
    "policies/tpch/lineitem.yml": LINEITEM,
    "policies/tpch/orders.yml": ORDERS,
}
"""Path below the project's folder, and text."""


def write_policies(project: Path) -> int:
    """Write the project file and all policies; return the number of policy files."""
    for name, text in FILES.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return len(FILES) - 1
