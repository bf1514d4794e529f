"""The command line: reads options, calls ``app`` and prints what ``report`` renders.

``main`` loads each command's module only when the command runs, so that ``--help`` stays fast. Nothing imports
this package. ``act`` changes tables, ``inspect`` looks, ``ui`` serves pages; what sets up a project or a machine is
beside them. ``new_project`` holds the texts of the files that ``init`` writes. A new command is a function and a line
in ``main``.
"""
