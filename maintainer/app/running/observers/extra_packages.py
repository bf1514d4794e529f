"""Libraries that only some need: each is an extra of the package, and is loaded when something asks for it."""

from __future__ import annotations

from importlib.util import find_spec

from maintainer.errors import EnvironmentUnfit


def require_extra(extra: str, module: str, what: str) -> None:
    """Check that a library is there.

    Raises:
        EnvironmentUnfit: E629, with the command that installs it.
    """
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:  # of a package that the module lies in
        spec = None
    if spec is None:
        raise EnvironmentUnfit(
            f"{what} needs a package that is not installed",
            code="E629",
            found=f"missing: {module}",
            help=f"pip install 'maintainer[{extra}]'",
        )
