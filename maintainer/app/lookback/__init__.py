"""What past runs did, from run folders, table histories and the ledger.

History, the last outcome of each table, reports as HTML, and rebuilding a ledger. Nothing here changes a table.
"""
