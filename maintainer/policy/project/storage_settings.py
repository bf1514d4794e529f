"""The key ``storage`` of maintainer.yml: the kinds of object store that tables lie on, written or seen in addresses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from maintainer.model.table.store_kinds import store_kind


def storage_kinds(data: Mapping[str, object], locations: Iterable[str]) -> tuple[str, ...]:
    """Return the kinds of object store whose connectors are needed, each once.

    Args:
        data: maintainer.yml. What it says counts alone, also an empty list: then the Spark has its own connectors.
        locations: Addresses of tables and of the ledger; names and local paths say nothing.
    """
    written = data.get("storage")
    if isinstance(written, list):
        return tuple(dict.fromkeys(str(kind) for kind in written))
    schemes = sorted({urlsplit(location).scheme.lower() for location in locations if "://" in location})
    kinds = (store_kind(f"{scheme}:").connector for scheme in schemes)
    return tuple(dict.fromkeys(kind for kind in kinds if kind is not None))
