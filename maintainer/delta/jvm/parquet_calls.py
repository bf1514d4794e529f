"""Copy row groups of Parquet files with parquet-hadoop, which Spark brings along. No Spark job, no value is decoded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from maintainer.delta.jvm.gateway import Gateway, required
from maintainer.delta.jvm.storage_calls import TableFolder

REQUIRED = required(
    {
        "org.apache.parquet.hadoop.rewrite.RewriteOptions$Builder": "<init>/3 prune/1 transform/1 build/0",
        "org.apache.parquet.hadoop.rewrite.ParquetRewriter": "<init>/1 processBlocks/0 close/0",
    }
)
"""What this module calls of parquet-hadoop, whose version is Spark's."""


class ParquetCalls(Gateway):
    """parquet-hadoop's ``ParquetRewriter``, which refuses files of different schemas."""

    def copy_row_groups(
        self,
        folder: TableFolder,
        sources: Iterable[str],
        target: str,
        *,
        without: Sequence[str] = (),
        codec: str | None = None,
    ) -> None:
        """Join files by copying their row groups, in order. Nothing may be at the target yet.

        Args:
            folder: The table's folder, for its configuration.
            sources: Percent-encoded URIs of the files to join.
            target: Percent-encoded URI of the new file.
            without: Columns to leave out.
            codec: Compress all pages anew with it, in Spark's words; None keeps them as they are.
        """
        rewrite = self._jvm.org.apache.parquet.hadoop.rewrite
        inputs = self._array_list()
        for uri in sources:
            inputs.add(self.path(uri))
        options = rewrite.RewriteOptions.Builder(folder.conf, inputs, self.path(target))
        if without:
            names = self._array_list()
            for name in without:
                names.add(name)
            options = options.prune(names)
        if codec is not None:
            names_of_codecs = self._jvm.org.apache.parquet.hadoop.metadata.CompressionCodecName
            options = options.transform(names_of_codecs.fromConf(codec.upper()))
        rewriter = rewrite.ParquetRewriter(options.build())
        try:
            rewriter.processBlocks()
        finally:
            rewriter.close()
