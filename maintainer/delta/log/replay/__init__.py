"""Replaying a log: what a version is made of by the protocol's rules, and what may be deleted by its removals.

Everything that reads tables may import it. How a new action counts goes to `version_replay`; what keeps a file on
storage goes to `log_replay`.
"""
