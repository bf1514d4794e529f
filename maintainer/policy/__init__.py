"""Read policy files strictly, check them with positions, and resolve them with the origin of every value. No Spark.

``yaml`` reads files, ``schema`` and ``policy_checks`` judge them, ``resolve`` merges levels, ``project`` holds all of
it together, ``selectors`` choose tables. A rule about settings goes into ``setting_rules``. A new policy key starts
in ``schemas/policy.schema.json`` and ``resolve.resolved``, a new code of a finding in `diagnostics` and
``docs/codes.md``.
"""
