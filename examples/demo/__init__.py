"""``maintainer demo``: builds a small lake of real data and walks through every command on it.

``demo_lake`` builds the tables, ``demo_project`` holds the policies, ``tour`` runs the commands and prints. Only
``maintainer.cli.demo_command`` imports this package.
"""
