"""Renders plans, outcomes and policies as text, Markdown, JSON, JUnit, SARIF and HTML.

One folder for each subject: ``plan``, ``run``, ``status``, ``policy``, ``validate``, ``html``; ``findings`` and
``text`` hold what they share. ``app`` and ``cli`` import this package. A change of words or layout goes here.
"""
