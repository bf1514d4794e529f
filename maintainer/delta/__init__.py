"""The only package that imports pyspark, delta and py4j: reads, rewrites, proves, commits and deletes.

``engine`` joins it all behind ``maintainer.engine.protocols``. ``rewrite`` writes and commits, ``proof``
compares rows, ``vacuum`` deletes, ``verify`` proves commits after the fact, ``snapshot`` and ``log`` read the
log, ``commands`` is the second engine. Only ``app`` and ``cli`` open it; imports inside point from ``engine``
down to ``jvm``.
"""
