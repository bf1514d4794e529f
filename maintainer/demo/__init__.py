"""The demo: a small lake of real, public data, and a walk through everything on it."""
