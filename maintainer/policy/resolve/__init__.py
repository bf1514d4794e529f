"""Merges defaults, rules, profiles and a table's own file into one effective policy, with origins."""
