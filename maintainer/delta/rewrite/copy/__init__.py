"""The copy lane: files with large row groups are joined by copying these, without writing a value anew.

Only `maintainer.delta.rewrite` may import it. What a footer must say for a bin to be copied stands in `footers`; how
the statistics of the new file are computed in `copied_statistics`. The proof is in `delta.proof`.
"""
