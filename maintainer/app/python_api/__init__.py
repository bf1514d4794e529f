"""The Python API for notebooks, jobs and orchestrators: small objects over the operations that the commands use.

``from maintainer import Project``. Nothing here prints, prompts or ends the process. What the command line prints on
stderr comes as events; what it says by an exit code is returned or raised.
"""

from maintainer.app.python_api.answers import Plan, Rows, Run, RunFailed, Text
from maintainer.app.python_api.project_api import Project
from maintainer.app.python_api.table_api import Table

__all__ = ["Plan", "Project", "Rows", "Run", "RunFailed", "Table", "Text"]
