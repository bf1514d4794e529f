"""Options that several commands share, and how they are read.

``selection_options`` chooses tables, ``engine_options`` chooses the engine, ``shared_options`` holds budgets
and output forms. A new option that more than one command takes goes here.
"""
