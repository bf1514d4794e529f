"""Findings of ``validate`` as text, JSON, GitHub annotations, JUnit and SARIF."""
