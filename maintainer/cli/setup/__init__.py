"""Commands for a new project or machine: init, demo, doctor, completion, version.

``new_project`` holds the texts of the files that ``init`` writes.
"""
