"""Turns what Spark, Delta, Java and object stores raise into our own errors.

``engine_failures`` reads a throwable with its causes and is what the rest of ``delta`` calls: it asks the two others.
``machine_failures`` knows disks, files, memory and addresses, ``store_answers`` what an object store replied.
"""
