"""Composition root: joins policies, planning, the engine and memory. What the CLI and other programs call."""

from maintainer.app.project import Project

__all__ = ["Project"]
