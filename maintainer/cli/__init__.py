"""The command line: reads options, calls ``app`` and prints what ``report`` renders.

``main`` loads each command's module only when the command runs, so that ``--help`` stays fast. Nothing imports
this package. A new command is a function in ``act``, ``inspect`` or ``setup`` and a line in ``main``.
"""
