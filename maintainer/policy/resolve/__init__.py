"""Merge defaults, rules, profiles and a table's own file into one effective policy, with origins.

May import ``schema``, ``table_names``, ``yaml`` and below. A new key is a field in `policy_settings`, with its
default, bound, unit and text; `policy_fields` reads it from the key of its name.
"""
