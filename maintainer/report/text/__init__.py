"""Text that lines up and cannot be hijacked: escaping, widths, colours, Markdown."""
