"""Scripts that measure; not tests."""
