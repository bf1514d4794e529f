"""Watches on which classes the package really calls what: a list of names alone cannot tell one owner from another.

Each call that a module of ``maintainer`` makes through py4j is taken down by class, method and number of arguments. It
must be on the list, under that class or one that it derives from, or belong to a public interface that the class has.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import maintainer
from tests.support.product import gateway

PACKAGE = str(Path(maintainer.__file__).parent)
PRIVATE = re.compile(r"(?:org\.apache\.spark|io\.delta|org\.apache\.parquet|maintainer)\.")
PUBLIC = re.compile(
    r"org\.apache\.spark\.(?:SparkConf|SparkThrowable|package|api\.java\.\w+"
    r"|sql\.(?:Dataset|SparkSession|Column|functions|SaveMode|types\.\w+"
    r"|connector\.catalog\.(?:CatalogPlugin|TableCatalog|Table|Identifier)))"
    r"|io\.delta\.(?:package|kernel\..*)"
)
"""What a user may call, too; of Delta Kernel, another list says what is there."""
OUR_METHODS = {"guard", "release", "start", "leaveCheckpoint"}
"""Of our own Java classes, which derive from Delta's."""

Call = tuple[str, str, int]
"""Class, method (``<init>`` for a constructor), number of arguments."""


class CallOwners:
    """What was called that is neither listed nor public, by where it was called first."""

    def __init__(self, listed: Collection[gateway.Required]) -> None:
        self.unlisted: dict[Call, str] = {}
        self.seen: set[Call] = set()
        self._listed = {
            (gateway.full_name(cls).removesuffix("$"), name, count)
            for cls, member, counts in listed
            for name in member.split("|")
            for count in counts
        }
        self._thread = threading.local()

    def note(self, call: Any, target: str, client: Any, method: str, count: int) -> None:
        """Look at one call before it is made; ``call`` is py4j's own.

        Args:
            call: Calls a method of an object: target, name, arguments.
            target: Id of the object, ``z:`` before the name of a class whose static method it is, or that name.
            client: py4j's.
            method: Its name.
            count: Number of arguments.
        """
        caller = _caller()
        if caller is None or getattr(self._thread, "looks", False):
            return
        self._thread.looks = True
        try:
            cls = call(client, target, "getClass") if re.match(r"o\d+$", target) else None
            name = target.removeprefix("z:") if cls is None else str(cls.getName())
            known: Call = name, method, count
            if known in self.seen:
                return
            self.seen.add(known)
            owners = [(name, None)] if cls is None else _ancestors(cls)
            if not any(self._may_call(call, client, each, owner, known) for each, owner in owners):
                self.unlisted[known] = f"{caller.f_code.co_filename.removeprefix(PACKAGE)}:{caller.f_lineno}"
        finally:
            self._thread.looks = False

    def _may_call(self, call: Any, client: Any, owner: str, cls: Any, known: Call) -> bool:
        name, method, count = known
        if (owner.removesuffix("$"), method, count) in self._listed:
            return True
        if PRIVATE.match(owner) and not PUBLIC.fullmatch(owner.removesuffix("$")):
            return owner.startswith("maintainer.") and method in OUR_METHODS
        if owner == name:
            return True
        listing = str(call(client, "z:scala.runtime.ScalaRunTime", "stringOf", cls.getMethods()))
        return gateway.has_signature(listing, f"{owner}.{method}", count)


def _caller() -> FrameType | None:
    """The frame of the package that makes a call, None where the call is of PySpark or of a test."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and ("py4j" in frame.f_code.co_filename or frame.f_code.co_filename == __file__):
        frame = frame.f_back
    return frame if frame is not None and frame.f_code.co_filename.startswith(PACKAGE) else None


def _ancestors(cls: Any) -> Iterator[tuple[str, Any]]:
    """A class and all that it derives from, by their names."""
    waiting, met = [cls], set[str]()
    while waiting:
        each = waiting.pop()
        name = str(each.getName())
        if name not in met:
            met.add(name)
            yield name, each
            waiting += [parent for parent in (each.getSuperclass(), *each.getInterfaces()) if parent is not None]


@contextmanager
def watched_owners(listed: Collection[gateway.Required]) -> Iterator[CallOwners]:
    """Watch all calls of this process within the block."""
    from py4j.java_gateway import JavaClass, JavaMember

    owners = CallOwners(listed)
    call_member, call_class = JavaMember.__call__, JavaClass.__call__

    def call(client: Any, target: str, method: str, *arguments: Any) -> Any:
        return call_member(JavaMember(method, None, target, client), *arguments)

    def of_member(member: Any, *arguments: Any) -> Any:
        owners.note(call, member.target_id, member.gateway_client, member.name, len(arguments))
        return call_member(member, *arguments)

    def of_class(cls: Any, *arguments: Any) -> Any:
        owners.note(call, cls._fqn, cls._gateway_client, "<init>", len(arguments))
        return call_class(cls, *arguments)

    JavaMember.__call__, JavaClass.__call__ = of_member, of_class
    try:
        yield owners
    finally:
        JavaMember.__call__, JavaClass.__call__ = call_member, call_class
