"""The local lane: small bins are read and written in this process by pyarrow, without a Spark job.

Only `maintainer.delta.rewrite` may import it. A new type of column goes to `arrow_rows` (how a file declares it, and
how older files are read as it), a new order of rows to `local_lane`. Its proof is elsewhere (`delta.proof`) and shares
no code with it.
"""
