"""Plans as text and Markdown, every decision for ``why``, and what would change a decision."""
