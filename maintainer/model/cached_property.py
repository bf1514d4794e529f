"""A property that is computed once for each object, and holds up no other object meanwhile.

Until Python 3.12 ``functools.cached_property`` computes under one lock for all objects of its class. A worker that
started Java kept all others waiting, and two that came to need each other's property never went on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, cast, overload

_Value = TypeVar("_Value")


class cached_property(Generic[_Value]):
    """Compute a value when it is first asked for; threads that ask at once may each compute it, and get the first."""

    def __init__(self, compute: Callable[[Any], _Value]) -> None:
        self.func = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, of: None, owner: type | None = None) -> Self: ...

    @overload
    def __get__(self, of: object, owner: type | None = None) -> _Value: ...

    def __get__(self, of: object | None, owner: type | None = None) -> Self | _Value:
        if of is None:
            return self
        return cast(_Value, of.__dict__.setdefault(self._name, self.func(of)))
