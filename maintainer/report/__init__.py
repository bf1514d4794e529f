"""Renderings of plans and outcomes."""
