"""Endpoints that services of `pando up` reach: a file of the data directory for each of them.

Gateways read from theirs; the console sends to its own, which sinks name.
"""

from typing import Any

import msgspec

from building.files.site_files import write_atomically
from deploy.local.endpoint_options import endpoint_kind
from deploy.local.kept_endpoints import CONSOLE, OURS, Endpoints, check_name, read_endpoints
from deploy.local.layout import Layout
from federated_optimizer.coordinator.contract.sink_endpoints import sink_endpoints
from gateway.connectors.options import convert_options, own_options
from host.files.atomic_file import PRIVATE
from host.files.json_file import read_json
from streamsql.errors import DeploymentError, WireError
from streamsql.wire.topics import check_id


def add_endpoint(layout: Layout, gateway: str, name: str, options: dict[str, Any]) -> None:
    """Add an endpoint, or replace it; a running gateway is to be restarted then.

    Args:
        layout: Of the data directory.
        gateway: Which has it: gw-1, or the console.
        name: What `endpoint = '…'` of sources says, or of sinks at the console.
        options: "connector" and what the connector's endpoint takes.

    Raises:
        DeploymentError: The name, the connector or an option is wrong. No value is repeated.
    """
    _check_name(gateway, "gateway")
    _check_name(name, "endpoint")
    if gateway == CONSOLE:
        sink_endpoints({name: options})
    else:
        check_name(name)
        rest = own_options(options)
        kind = endpoint_kind(gateway, str(options["connector"]))
        convert_options(rest, kind, f"endpoint {name}")
    _write(layout, gateway, {**read_endpoints(layout, gateway), name: options})


def remove_endpoint(layout: Layout, gateway: str, name: str) -> None:
    """Remove an endpoint.

    Raises:
        DeploymentError: There is none of that name.
    """
    _check_name(gateway, "gateway")
    known = read_endpoints(layout, gateway)
    if name not in known:
        raise DeploymentError(
            f"{gateway} has no endpoint {name!r:.80}",
            hint=f"it has {', '.join(sorted(known)) or 'none'}",
        )
    _write(layout, gateway, {key: value for key, value in known.items() if key != name})


def _write(layout: Layout, gateway: str, endpoints: Endpoints) -> None:
    path = layout.endpoints(gateway)
    text = msgspec.json.format(msgspec.json.encode(endpoints), indent=2)
    write_atomically(path, text, PRIVATE)  # it may hold passwords
    _change_running(layout, gateway, endpoints)


def _change_running(layout: Layout, gateway: str, endpoints: Endpoints) -> None:
    """Put the endpoints into the settings that the gateway reads when it is restarted."""
    path = layout.settings(gateway)
    if not path.exists():
        return
    settings = read_json(path, dict[str, Any], "settings")
    running = settings.get("endpoints", {})
    ours = {} if gateway == CONSOLE else {name: running[name] for name in running if name in OURS}
    settings["endpoints"] = {**ours, **endpoints}
    write_atomically(path, msgspec.json.format(msgspec.json.encode(settings), indent=2), PRIVATE)


def _check_name(text: str, what: str) -> None:
    try:
        check_id(text, what)
    except WireError as error:
        raise DeploymentError(error.message, hint=error.hint) from None
