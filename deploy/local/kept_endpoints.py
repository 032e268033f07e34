"""The files with the endpoints of services: a site is provisioned with them."""

from typing import Any

from deploy.local.layout import Layout
from host.files.json_file import read_json
from streamsql.errors import DeploymentError

Endpoints = dict[str, dict[str, Any]]
"""By name: `{"connector": kind, …}`."""

CONSOLE = "console"
OURS = frozenset({"building", "machine", "calendar", "recording"})
"""Endpoints of gateways that `pando up` makes itself; none can be added under their names."""
MAX_BYTES = 1_000_000


def read_endpoints(layout: Layout, gateway: str) -> Endpoints:
    """Return the endpoints of a gateway.

    Raises:
        DeploymentError: The file is damaged, or holds a name of ours; says where.
    """
    path = layout.endpoints(gateway)
    if not path.exists():
        return {}
    hint = "correct the file, or remove it and add the endpoints again"
    found = read_json(path, Endpoints, "endpoints", hint=hint, max_bytes=MAX_BYTES)
    if gateway != CONSOLE:
        for name in found:
            check_name(name, f"endpoints {path}: ")
    return found


def check_name(name: str, where: str = "") -> None:
    """Refuse the name of an endpoint of a gateway that `pando up` makes itself.

    Raises:
        DeploymentError: It is one.
    """
    if name in OURS:
        raise DeploymentError(
            f"{where}pando up creates the endpoint {name} itself", hint="choose another name"
        )
