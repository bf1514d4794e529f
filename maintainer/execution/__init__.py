"""Carries out plans: one table's steps, and many tables at once."""
