"""Renders plans, outcomes and policies as text, Markdown, JSON, JUnit, SARIF and HTML.

One folder or module for each subject: ``plan``, ``run``, ``html``, status and history, policies, findings of
``validate``. ``findings``, ``style`` and ``text_layout`` hold what they share. ``app`` and ``cli`` import this
package. A change of words or layout goes here.
"""
