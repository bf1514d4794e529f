"""Decides what to do, as pure functions of a policy, a table's facts and the time. No Spark, no clock, no files.

``plan_input`` is what planning depends on, ``needs`` what must still be read. ``planner`` plans one table and asks
``operations`` for rewrites, ``zorder`` for incremental Z-order, ``vacuum`` for deletions, ``property_plan`` for
settings, ``selection`` for which files, ``budget`` for how much. ``recheck`` says whether a saved plan still holds.
``app`` and ``execution`` import this package.
"""
