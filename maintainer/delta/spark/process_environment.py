"""What a process needs so that Java and Python see the same files: names in UTF-8, and a user whom Java knows."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Mapping

from maintainer.errors import EnvironmentUnfit

UTF8_LOCALE = "C.UTF-8"
ENOUGH_FILES = 512
"""With so many that may be open, small tables are compacted."""


def refuse_other_names(encoding: str) -> None:
    """Refuse a Python that reads names of files otherwise than Delta writes them: a live file would have another name.

    Raises:
        EnvironmentUnfit: E639.
    """
    if not _is_utf8(encoding):
        raise EnvironmentUnfit(
            "this Python does not read names of files in UTF-8",
            code="E639",
            found=encoding,
            allowed="utf-8",
            help=f"set PYTHONUTF8=1, or a locale such as LC_ALL={UTF8_LOCALE}",
        )


def java_environment(env: Mapping[str, str], encoding: str, *, is_local: bool) -> dict[str, str]:
    """Return the environment in which Java reads names of files in UTF-8, as Python does.

    Java has no option for that. Where the locale is C, or one that is not installed, it sees no file whose name has a
    letter that is not ASCII, and a table in such a folder would seem to be gone.

    Args:
        env: That of this process.
        encoding: That of its locale.
        is_local: Whether all of Spark is on this machine: then it does not look up the machine's name, which may lead
            nowhere in a container or with a VPN.
    """
    names = {} if _is_utf8(encoding) else {"LC_ALL": UTF8_LOCALE}
    return {**({"SPARK_LOCAL_IP": "127.0.0.1"} if is_local else {}), **env, **names}


def _is_utf8(encoding: str) -> bool:
    return codecs.lookup(encoding).name == "utf-8"


def limit_of_files() -> str:
    """Name a limit of open files that Spark, which has some 300 JARs, does not start with; empty where it is higher.

    Java raises the lower of the two limits to the higher one by itself.
    """
    if sys.platform == "win32":
        return ""
    import resource

    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return f", and `ulimit -n`, which is {most}" if 0 <= most < ENOUGH_FILES else ""


def refuse_nameless_user() -> None:
    """Refuse a user without an entry in passwd, as in containers that run with any uid: Hadoop cannot log one in.

    Raises:
        EnvironmentUnfit: E607.
    """
    if sys.platform == "win32":
        return
    import pwd

    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        uid, gid = os.getuid(), os.getgid()
        raise EnvironmentUnfit(
            "Spark does not start for a user without a name",
            code="E607",
            found=f"uid {uid} has no entry in /etc/passwd",
            help=f"add one when the container starts: echo 'maintainer:x:{uid}:{gid}::/tmp:/bin/sh' >> /etc/passwd; or "
            "run as a user who has one",
        ) from None
