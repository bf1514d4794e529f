"""Protocols between maintainer and an engine, the client of object stores, and the detection of an engine that is gone.

``protocols`` names what an engine must do: read tables, write steps, read versions, delete files. ``store`` is the
client of object stores, for tables and the state. ``process_loss`` recognises a Spark JVM or Connect server that has
died; ``worker_threads``, ``side_call`` and ``process_change`` are what runs and plans do on several threads. Every
layer above ``policy`` may import this package. Add a method here only when no existing one fits; then implement it for
both engines in ``delta`` and in the tests' fake.
"""
