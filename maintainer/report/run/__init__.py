"""A run for people and machines: progress while it goes on, its end, GitHub annotations and JUnit."""
