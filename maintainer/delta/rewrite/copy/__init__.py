"""The copy lane: files with large row groups are joined by copying these, without decoding a value.

Only `maintainer.delta.rewrite` may import it. What a footer must say for a bin to be copied stands in `footers`; how
the statistics of the new file come from those of its sources in `merged_statistics`. The proof is in `delta.proof`.
"""
