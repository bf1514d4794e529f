"""Describe findings in policy files: code, position, message and help.

Every other folder of ``policy`` may import this one. A new code goes into `diagnostic_codes` and ``docs/codes.md``.
"""
