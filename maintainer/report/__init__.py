"""Renders plans, outcomes and policies as text, Markdown, JSON, JUnit, SARIF and HTML.

One folder or module for each subject: ``plan``, ``run``, ``html``, status and history, policies, findings of
``validate``. What is said is built as a ``document`` once, for each writer; ``findings``, ``style`` and ``text_layout``
are shared, too. ``status_text`` and ``status_documents`` have the rows of history as well. ``app`` and ``cli`` import
this package. A change of words or layout goes here.
"""
