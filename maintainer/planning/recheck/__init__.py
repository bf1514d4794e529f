"""Says whether a saved plan still holds, and what changed in a table since it was made.

Asked for every table right before anything of a plan runs.
"""
