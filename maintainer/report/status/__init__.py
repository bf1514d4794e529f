"""``status`` and ``history`` as text, CSV, JSON and Prometheus metrics."""
