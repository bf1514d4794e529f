"""Reports as one HTML file: no network, no script, readable anywhere, and every name in it only text."""
