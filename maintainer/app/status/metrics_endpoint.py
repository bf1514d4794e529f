"""Serves the metrics of a watch over HTTP, by prometheus-client: the extra ``maintainer[metrics]``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from maintainer.app.project_folders import Project
from maintainer.app.running.observers.event_thread import require_extra
from maintainer.errors import ProjectError
from maintainer.policy.project.project_sections import is_this_machine

if TYPE_CHECKING:
    from maintainer.app.status.run_metrics import RunMetrics

DEFAULT_HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class MetricsEndpoint:
    """An open endpoint: what it counts, and where it is."""

    metrics: RunMetrics
    url: str


@contextmanager
def metrics_endpoint(project: Project, host: str, port: int) -> Iterator[MetricsEndpoint]:
    """Serve metrics at ``/metrics`` for as long as the block lasts.

    Args:
        project: The project.
        host: The address to listen on; `DEFAULT_HOST` is for this machine alone.
        port: The port; 0 lets the system choose.

    Raises:
        EnvironmentUnfit: E629, prometheus-client is not installed.
        ProjectError: E638, nothing can be served there.
    """
    require_extra("metrics", "prometheus_client", "serving metrics")
    from prometheus_client import start_http_server

    from maintainer.app.status.run_metrics import RunMetrics

    metrics = RunMetrics(project)
    try:
        server, thread = start_http_server(port, host, metrics.registry)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise ProjectError(
            "the metrics cannot be served at this address",
            code="E638",
            where=f"{host}:{port}",
            found=reason or str(error),
            help="choose another --metrics-port, or an address of this machine as --metrics-host",
        ) from error
    if (app := server.get_app()) is not None and is_this_machine(str(server.server_address[0])):
        server.set_app(_for_this_machine(app, host))
    shown = f"[{host}]" if ":" in host else host
    try:
        yield MetricsEndpoint(metrics, f"http://{shown}:{server.server_port}/metrics")
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


def _for_this_machine(app: Callable[..., Any], host: str) -> Callable[..., Any]:
    """Answer only requests that name this machine, so that no page of another site reads names by one of its own."""

    def guarded(environ: Mapping[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        try:
            named = urlsplit(f"//{environ.get('HTTP_HOST', '')}").hostname or ""
        except ValueError:
            named = ""
        if named == host.lower() or is_this_machine(named):
            return cast(Iterable[bytes], app(environ, start_response))
        start_response("421 Misdirected Request", [("Content-Type", "text/plain")])
        return [b"Only requests to this machine are answered."]

    return guarded
