"""Operations that change tables or judge commits: apply, watch, undelete, verify.

``apply_plan`` makes the last checks and starts the run; ``execution`` does the work on each table.
"""
