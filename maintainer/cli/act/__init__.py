"""Commands that plan, make or prove changes: plan, apply, retry, verify, undelete, watch, ledger.

Each module is one command. The work itself is done in ``app``; a change of behaviour belongs there, not here.
"""
