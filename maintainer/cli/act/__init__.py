"""Commands that plan, make or prove changes: plan, apply, retry, watch, verify, undelete, ledger, leases.

The work itself is done in ``app``; a change of behaviour belongs there, not here.
"""
