"""Options of an endpoint as somebody types them: `name=value`, each to the type of its field."""

import json
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from deploy.local.kept_endpoints import CONSOLE
from federated_optimizer.coordinator.contract.sink_endpoints import sink_endpoint_kind
from gateway.connectors.registry import ConnectorRegistry


def typed_options(gateway: str, connector: str, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of an endpoint, "connector" among them.

    A text is read as JSON where its option is no text: 5, true, ["a"], {"a": "b"}. `name.key` puts
    one entry into an option that is an object, such as `tokens.lora`.

    Args:
        gateway: Whose endpoint it is: gw-1, or the console.
        connector: Its kind.
        texts: What was typed, by option.

    Raises:
        DeploymentError: There is no such connector.
    """
    kind = endpoint_kind(gateway, connector)
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    found: dict[str, Any] = {"connector": connector}
    for name, text in texts.items():
        outer, dot, key = name.partition(".")
        if dot and name not in fields and _may_be(fields.get(outer), dict):
            entries = found.setdefault(outer, {})
            if isinstance(entries, dict):
                entries[key] = text
        else:
            found[name] = text if _may_be(fields.get(name), str) else _read(text)
    return found


def endpoint_kind(gateway: str, connector: str) -> type[msgspec.Struct]:
    """Return the struct of an endpoint's options.

    Raises:
        DeploymentError: There is no such connector.
    """
    if gateway == CONSOLE:
        return sink_endpoint_kind(connector)
    return ConnectorRegistry().factory(connector)().endpoint_options


def _may_be(kind: Any, wanted: type) -> bool:
    """Compare a field's type with a wanted one; True if they share values."""
    origin = get_origin(kind)
    if origin in {Union, types.UnionType}:
        return any(_may_be(part, wanted) for part in get_args(kind))
    if origin is Literal:
        return any(isinstance(value, wanted) for value in get_args(kind))
    plain = origin or kind
    return isinstance(plain, type) and issubclass(plain, wanted)


def _read(text: str) -> object:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return text if value is None else value
