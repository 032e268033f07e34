"""The files with the endpoints of services: a site is provisioned with them."""

from typing import Any

from deploy.local.layout import Layout
from host.files.json_file import read_json

Endpoints = dict[str, dict[str, Any]]
"""By name: `{"connector": kind, …}`."""

CONSOLE = "console"
MAX_BYTES = 1_000_000


def read_endpoints(layout: Layout, gateway: str) -> Endpoints:
    """Return the endpoints of a gateway.

    Raises:
        DeploymentError: The file is damaged; says where.
    """
    path = layout.endpoints(gateway)
    if not path.exists():
        return {}
    hint = "correct the file, or remove it and add the endpoints again"
    return read_json(path, Endpoints, "endpoints", hint=hint, max_bytes=MAX_BYTES)
