"""The table features that our own rewrite and deletion keep intact.

The planner compares a table's protocol with this list and leaves a table with any other feature alone, by name. A
feature is on the list only if a test rewrites a table that has it. Names are Delta's own (the protocol's
``readerFeatures`` and ``writerFeatures``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from maintainer.model.table.table_facts import Protocol

REWRITABLE_FEATURES: frozenset[str] = frozenset(
    {
        # Forbids commits that remove rows. Ours say dataChange=false, which Delta lets through.
        "appendOnly",
        # NOT NULL and the old per-column invariants: evaluated again on every rewritten row.
        "invariants",
        # CHECK constraints: evaluated again on every rewritten row.
        "checkConstraints",
        # A rewrite with dataChange=false writes no change rows and readers of the feed see none.
        "changeDataFeed",
        # Values are in the files; Delta checks them against the expression again.
        "generatedColumns",
        # Values are in the files; the high-water mark in the schema is not touched.
        "identityColumns",
        # Defaults concern new rows only.
        "allowColumnDefaults",
        # Read and written under physical names by Delta itself; renamed and dropped columns are tested.
        "columnMapping",
        # Soft-deleted rows are left out by Delta's reader; the vectors go with the removed files.
        "deletionVectors",
        # Row ids and commit versions are read and written into the new files, and part of the proof.
        "rowTracking",
        # Clustered tables are clustered by a step of their own, with Delta's tags; nothing else rewrites them.
        "clustering",
        # Domains are not touched by a rewrite (clustering columns are a feature of their own).
        "domainMetadata",
        # A commit's time is inside the commit; Delta writes it.
        "inCommitTimestamp",
        # A form of the checkpoint; Delta writes it.
        "v2Checkpoint",
        # Restricts clean-up of old log files, which we never do.
        "checkpointProtection",
        # Partition columns are also in the data files; Delta's writer looks at it.
        "materializePartitionColumns",
        "timestampNtz",
        # Old files hold the narrower type; Delta's reader widens, the rewrite writes the wider type.
        "typeWidening",
        "typeWidening-preview",
        # Values are compared by their JSON and type; the binary form may legitimately change.
        "variantType",
        "variantType-preview",
        "variantShredding",
        "variantShredding-preview",
        # Demands that VACUUM checks the protocol first; ours does.
        "vacuumProtocolCheck",
    }
)
"""Features that a table may have and still be rewritten, and vacuumed, by our own engine."""

NOT_PERMITTED = "the table's catalog does not permit maintenance"
NOT_PERMITTED_HELP = (
    "leave it to the catalog, and remove the table from the policies; Unity Catalog may permit it from 0.7.0 on, "
    "but no Delta up to 4.4.0 obeys that"
)
"""What is said of a table that its catalog manages (T407)."""

UNSUPPORTED_CODES = frozenset({"T404", "T406", "T407"})
"""Codes of tables that cannot be maintained safely: they are named, and left as they are."""

WHY_NOT: dict[str, str] = {
    "catalogManaged": "its catalog does not permit maintenance, and Delta up to 4.4.0 obeys none that does",
    "coordinatedCommits-preview": "commits go through a coordinator, with which nothing here is tested",
    "icebergCompatV1": "its files also belong to an Iceberg table, which has rules of its own",
    "icebergCompatV2": "its files also belong to an Iceberg table, which has rules of its own",
    "icebergCompatV3": "its files also belong to an Iceberg table, which has rules of its own",
    "geospatial": "a fingerprint does not cover its values, so that a rewrite could not be proven",
    "redirectReaderWriter-preview": "the table has moved or is about to",
    "redirectWriterOnly-preview": "the table has moved or is about to",
    "adaptiveMetadata-preview": "its log has a form with which nothing here is tested",
    "collations": "no feature of Delta 4.4.0",
}
"""Why a feature that Delta or another engine knows is not on the list. Any other is refused all the same."""


def unsupported_features(protocol: Protocol) -> tuple[str, ...]:
    """Return the features of the protocol that are not on the list, sorted; empty if the table may be rewritten."""
    named = set(protocol.reader_features) | set(protocol.writer_features)
    return tuple(sorted(named - REWRITABLE_FEATURES))


def keeps_row_ids(properties: Mapping[str, str]) -> bool:
    """Return whether row tracking is on: Delta takes ``true`` in any case, and keeps it as it was written."""
    return properties.get("delta.enableRowTracking", "").lower() == "true"


NUM_INDEXED_COLUMNS = "delta.dataSkippingNumIndexedCols"
INDEXED_COLUMNS_NUMBER = re.compile(r"[+-]?[0-9]+")

TEXT_PREFIX_LENGTH = "delta.dataSkippingStringPrefixLength"

_DEFAULT_INDEXED_COLUMNS = 32
DEFAULT_TEXT_PREFIX = 32


def num_indexed_columns(properties: Mapping[str, str]) -> int:
    """Return how many leaf columns Delta collects statistics for at most; negative for all."""
    number = properties.get(NUM_INDEXED_COLUMNS, "")
    return int(number) if INDEXED_COLUMNS_NUMBER.fullmatch(number) else _DEFAULT_INDEXED_COLUMNS


def text_prefix_length(properties: Mapping[str, str]) -> int:
    """Return how many characters of a text Delta keeps as a bound; what it would not take itself counts as unset."""
    number = properties.get(TEXT_PREFIX_LENGTH, "")
    known = int(number) if INDEXED_COLUMNS_NUMBER.fullmatch(number) else -1
    return known if known >= 0 else DEFAULT_TEXT_PREFIX
