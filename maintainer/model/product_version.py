"""The version of maintainer: the package's metadata, the command line and every document take it from here."""

from __future__ import annotations

__version__ = "0.1.0"
