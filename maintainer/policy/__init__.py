"""Read policy files strictly, check them with positions, and resolve them with the origin of every value. No Spark.

``yaml`` reads files, ``schema`` and ``policy_checks`` judge them, ``resolve`` merges levels, ``project`` holds all of
it together, ``selectors`` choose tables. A rule about settings goes into ``setting_rules``. A new policy key is a field
in ``resolve.policy_settings``, a new key of maintainer.yml one in ``project.project_settings``; ``python -m
tools.policy_schema`` writes the schemas. A new code of a finding is a section of ``docs/codes.md``.
"""
