"""Delta's transaction layer in the JVM, as few thin typed calls. The only package that touches the gateway.

Everything private to Delta that the engine needs is called here and listed in the ``REQUIRED`` of its module, so
that ``self_test`` can say by reflection, before anything is touched, whether this Delta build still has it.
JVM objects leave this package only as opaque handles.

Facts that shape the calls: py4j knows no default arguments; a Python int arrives as
``java.lang.Integer``; members that are private to Delta's packages have no static forwarder and are reached
through ``X$.MODULE$``; ``DeltaLog`` reads the *active* session of the calling JVM thread, so ``activate`` comes
first on each thread.
"""

from __future__ import annotations

from maintainer.delta.jvm.bridge import DeltaJvm, cancel_jobs
from maintainer.delta.jvm.commit_store import OWN_LOG
from maintainer.delta.jvm.gateway import (
    LAST_PATCH,
    TESTED_DELTA,
    THREAD_PROPERTIES,
    is_tested_pair,
    tested_pairs,
)
from maintainer.delta.jvm.sessions import (
    ActiveSession,
    DirectAccess,
    JavaObject,
    UnstartedSession,
    changed_settings,
)
from maintainer.delta.jvm.storage_calls import TableFolder, planned_hadoop_conf
from maintainer.delta.jvm.transaction_calls import BORROWED

__all__ = [
    "BORROWED",
    "LAST_PATCH",
    "OWN_LOG",
    "TESTED_DELTA",
    "THREAD_PROPERTIES",
    "ActiveSession",
    "DeltaJvm",
    "DirectAccess",
    "JavaObject",
    "TableFolder",
    "UnstartedSession",
    "cancel_jobs",
    "changed_settings",
    "is_tested_pair",
    "planned_hadoop_conf",
    "tested_pairs",
]
