"""The command line: reads options, calls ``app`` and prints what ``report`` renders.

``main`` loads each command's module only when the command runs, so that ``--help`` stays fast. Nothing imports
this package. A new command is a module in ``act``, ``inspect``, ``setup`` or ``validate`` and a line in
``main``.
"""
