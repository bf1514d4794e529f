"""What is said of each reason beside its own sentence, and the policy keys behind it, from ``reason_words.yml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

import yaml

from maintainer.model.plan.reasons import ReasonCode


@dataclass(frozen=True, slots=True)
class ReasonWords:
    """What the file says of one reason; its head explains each field."""

    words: str = ""
    change: str = ""
    keys: tuple[str, ...] = ()
    timeless: str = ""
    is_loud: bool = False


@cache
def reason_words() -> Mapping[ReasonCode, ReasonWords]:
    """Return what is said of every reason; a test holds the set complete."""
    text = (resources.files(__package__) / "reason_words.yml").read_text(encoding="utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the one in C where there is one
    entries = yaml.load(text, loader).items()
    return {ReasonCode(code): ReasonWords(**{**said, "keys": tuple(said.get("keys", ()))}) for code, said in entries}
