"""Keep an archive of loaded classes beside the JARs, so that the JVM starts in half the time.

Java 17 and 21 write such an archive when a JVM ends (JEP 350) and map it into the next one. Java itself checks that
it fits: its own version, and every JAR on the class path by name, size and time. One that does not fit is ignored.
To write one costs more than it saves in the next three starts, so only ``doctor --warm`` does it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from maintainer.delta.spark.java_home import Java

RECORDING_TIMEOUT_SECONDS = 120.0
"""Longest that a JVM may take to write its archive when it ends; usually 5 seconds."""

MAX_ARCHIVES = 3
"""Archives of other Java versions or Spark folders that stay beside the JARs; one has about 190 MB."""

_NAME = "classes-{key}.jsa"
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"
_USERS_OWN = re.compile(r"-XX:[+]?(SharedArchiveFile|ArchiveClassesAtExit|AutoCreateSharedArchive)|-Xshare:")


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """What a JVM does about the archive: it reads ``path``, or records one at ``recording`` when it ends, or neither.

    Both are absolute. At most one of ``reads`` and ``recording`` is set.
    """

    path: Path
    reads: bool = False
    recording: Path | None = None

    def java_options(self) -> tuple[str, ...]:
        """Return the Java options, each as one word; the caller quotes them."""
        if self.reads:
            return (f"-XX:SharedArchiveFile={self.path}", *_QUIET.split())
        if self.recording is not None:
            return (f"-XX:ArchiveClassesAtExit={self.recording}", *_QUIET.split())
        return ()

    def keep_recording(self) -> None:
        """Move what the JVM recorded beside the JARs, whole or not at all; remove the oldest archives. Never raises."""
        if self.recording is None or not self.recording.is_file():
            return
        partial = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            try:
                shutil.copyfile(self.recording, partial)
                os.replace(partial, self.path)
            finally:
                partial.unlink(missing_ok=True)
            archives = sorted(self.path.parent.glob(_NAME.format(key="*")), key=lambda file: file.stat().st_mtime)
            for old in archives[:-MAX_ARCHIVES]:
                old.unlink(missing_ok=True)


def class_archive(
    java: Java, jars: Sequence[Path], spark_home: Path, session_folder: Path, *, record: bool, user_options: str | None
) -> ClassArchive:
    """Say what the JVM of a session does about the archive.

    Args:
        java: The Java that will run.
        jars: Our JARs; the archive lies beside the first.
        spark_home: The Spark folder whose JARs are on the class path.
        session_folder: The session's private folder, where an archive is recorded.
        record: Whether one is to be recorded, whatever lies there: Java may ignore that one.
        user_options: The user's own Java options; where they say something about archives, we say nothing.
    """
    named = "\n".join([str(java.executable.resolve()), java.version, str(spark_home), *(str(jar) for jar in jars)])
    path = jars[0].parent / _NAME.format(key=hashlib.sha256(named.encode()).hexdigest()[:16])
    if _USERS_OWN.search(user_options or ""):
        return ClassArchive(path)
    if record:
        writable = os.access(path.parent, os.W_OK)
        return ClassArchive(path, recording=session_folder / "classes.jsa" if writable else None)
    return ClassArchive(path, reads=path.is_file())
