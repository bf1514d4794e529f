"""Operations on a project: what the command line and the Python API call.

``operations`` has a function for each command that works on tables. ``selection`` chooses them, ``planning`` makes a
plan, ``running`` carries one out, ``status`` and ``lookback`` report on tables and past runs, ``python_api`` is what
notebooks import, ``auto_compact_hook`` compacts right after a write, in a writer's own process. ``engine_access`` is
the only place that opens an engine. ``cli`` imports this package; it imports everything below. A change of what a
command does goes here.
"""

from maintainer.app.project_folders import Project

__all__ = ["Project"]
