"""Commands for a new project or machine: init, demo, doctor, completion, version.

``init_files``, ``init_source`` and ``init_workflow`` hold the files that ``init`` writes.
"""
