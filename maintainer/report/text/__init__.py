"""Escaping, widths, colours, live lines and Markdown: what every text is made with."""
