"""Commands that only look: explain, history, inventory, list, report, schema, show, status, why.

Each prints what ``report`` renders. None of them writes to a table.
"""
