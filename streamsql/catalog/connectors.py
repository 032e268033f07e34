"""The connectors that feed declared sources; entry points add others at the gateways."""

import re
from collections.abc import Mapping
from enum import StrEnum


class ConnectorKind(StrEnum):
    """Connectors of ours that WITH (connector = …) may name."""

    MQTT = "mqtt"
    HTTP = "http"
    HTTP_PUSH = "http_push"
    MODBUS = "modbus"
    SNMP = "snmp"
    BACNET = "bacnet"
    OPCUA = "opcua"
    COAP = "coap"
    SQL = "sql"
    FILE = "file"
    MOTES = "motes"
    SOFT_SENSORS = "soft_sensors"
    CALENDAR = "calendar"
    REPLAY = "replay"


LOCAL_CONNECTORS = frozenset(
    {
        ConnectorKind.MOTES,
        ConnectorKind.SOFT_SENSORS,
        ConnectorKind.CALENDAR,
        ConnectorKind.REPLAY,
    }
)
"""Those for which `pando up` makes endpoints: what its site's script says of them comes first."""

MESSAGE_CONNECTORS = frozenset(
    {
        ConnectorKind.MQTT,
        ConnectorKind.HTTP,
        ConnectorKind.HTTP_PUSH,
        ConnectorKind.COAP,
        ConnectorKind.FILE,
    }
)
"""Those that receive payloads; our others hand over values by their addresses."""

SOURCE_OPTIONS: Mapping[str, tuple[str, ...]] = {
    ConnectorKind.MQTT: (
        "topic", "qos", "share", "retained", "availability", "offline",
        "request", "request_payload", "request_every", "rebirth",
    ),
    ConnectorKind.HTTP: ("path", "hosts", "interval"),
    ConnectorKind.HTTP_PUSH: ("path",),
    ConnectorKind.MODBUS: ("unit", "interval", "gap"),
    ConnectorKind.SNMP: ("interval",),
    ConnectorKind.BACNET: ("interval", "cov"),
    ConnectorKind.OPCUA: ("interval",),
    ConnectorKind.COAP: ("path", "interval"),
    ConnectorKind.SQL: ("watermark", "table", "query", "interval", "start"),
    ConnectorKind.FILE: ("files", "each", "encoding", "interval", "skip"),
    ConnectorKind.MOTES: ("topic",),
    ConnectorKind.SOFT_SENSORS: ("topic",),
    ConnectorKind.CALENDAR: (),
    ConnectorKind.REPLAY: (),
}  # fmt: skip
"""Options that a source of one of our connectors may have; the gateways know what they mean."""

BROWSED_CONNECTORS = frozenset(
    {ConnectorKind.SQL, ConnectorKind.OPCUA, ConnectorKind.BACNET, ConnectorKind.SNMP}
)
"""Those of ours that can list what their devices offer."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
_SITE = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ENDPOINT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def is_connector_name(text: str) -> bool:
    """Whether a connector, of ours or a plug-in, may have this name."""
    return _NAME.fullmatch(text) is not None


def is_endpoint_name(text: str) -> bool:
    """Whether an endpoint of a gateway may have this name."""
    return _ENDPOINT.fullmatch(text) is not None


def is_site_name(text: str) -> bool:
    """Whether a gateway may have this name."""
    return _SITE.fullmatch(text) is not None


def hands_over_records(connector: str) -> bool:
    """Whether FROM holds the connector's own addresses unless another format is given.

    Examples:
        >>> hands_over_records("modbus"), hands_over_records("mqtt"), hands_over_records("plug_in")
        (True, False, False)
    """
    return connector in tuple(ConnectorKind) and connector not in MESSAGE_CONNECTORS


def misspelled(text: str) -> str:
    """Return the connector of ours that a name means with other case or signs; empty for none.

    Examples:
        >>> misspelled("HTTP-Push"), misspelled("opc-ua"), misspelled("mqtt"), misspelled("mqtt5")
        ('http_push', 'opcua', '', '')
    """
    if text in tuple(ConnectorKind):
        return ""
    letters = _letters(text)
    return next((kind.value for kind in ConnectorKind if _letters(kind) == letters), "")


def _letters(text: str) -> str:
    return "".join(character for character in text.lower() if character.isalnum())
