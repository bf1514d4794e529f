"""What past runs did, from run folders, table histories and the ledger.

History, reports as HTML, tables in trouble again and again, and the ledger. Nothing here changes a table.
"""
