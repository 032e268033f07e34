"""Connectors by kind: our own, and those of other packages by the entry points `pando.connectors`.

A connector is imported only where it is used, so a gateway loads no more than it needs.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, cast

import msgspec

from gateway.connectors.connector import Connector
from streamsql.errors import DeploymentError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "pando.connectors"
"""Entry points `kind = module:Class`."""

MakeConnector = Callable[[], Connector]


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """Module and class of one of our connectors.

    Attributes:
        module: Imported when the connector is used for the first time.
        name: Of its class there.
        extra: Of this package: it installs the library that the connector needs; empty: none.
    """

    module: str
    name: str
    extra: str = ""


BUILT_IN: dict[str, BuiltIn] = {
    "mqtt": BuiltIn("gateway.connectors.mqtt.mqtt_connector", "MqttConnector"),
    "http": BuiltIn("gateway.connectors.http.http_connector", "HttpConnector", "http"),
    "file": BuiltIn("gateway.connectors.file.file_connector", "FileConnector"),
    "sql": BuiltIn("gateway.connectors.sql.sql_connector", "SqlConnector", "sql"),
    "http_push": BuiltIn("gateway.connectors.http_push.push_connector", "PushConnector", "http"),
    "bacnet": BuiltIn("gateway.connectors.bacnet.bacnet_connector", "BacnetConnector", "bacnet"),
    "coap": BuiltIn("gateway.connectors.coap.coap_connector", "CoapConnector", "coap"),
    "snmp": BuiltIn("gateway.connectors.snmp.snmp_connector", "SnmpConnector", "snmp"),
    "modbus": BuiltIn("gateway.connectors.modbus.modbus_connector", "ModbusConnector", "modbus"),
    "motes": BuiltIn("gateway.connectors.motes.motes_connector", "MotesConnector", "gateway"),
    "soft_sensors": BuiltIn(
        "gateway.connectors.soft_sensors.soft_sensors_connector", "SoftSensorsConnector", "gateway"
    ),
    "calendar": BuiltIn(
        "gateway.connectors.calendar.calendar_connector", "CalendarConnector", "gateway"
    ),
    "replay": BuiltIn("gateway.connectors.replay.replay_connector", "ReplayConnector"),
    "opcua": BuiltIn("gateway.connectors.opcua.opcua_connector", "OpcuaConnector", "opcua"),
}


class ConnectorMissingError(DeploymentError):
    """A connector cannot be used here: unknown, not allowed, or without its library."""

    code = "connector_missing"


class ConnectorRegistry:
    """The connectors that a gateway may run.

    Args:
        allowed: Their kinds; None: all that are installed.
        built_in: Our own, by kind.
    """

    def __init__(
        self, allowed: Collection[str] | None = None, built_in: dict[str, BuiltIn] = BUILT_IN
    ) -> None:
        self._allowed = allowed
        self._built_in = built_in
        self._made: dict[str, MakeConnector] = {}

    def kinds(self) -> tuple[str, ...]:
        """Return the kinds that may be used here, whether their libraries are there or not."""
        found = {*self._built_in, *_installed()}
        return tuple(sorted(kind for kind in found if self._is_allowed(kind)))

    def factory(self, kind: str) -> MakeConnector:
        """Return what makes connectors of a kind.

        Raises:
            ConnectorMissingError: There is none, it is not allowed, or cannot be imported.
        """
        if kind not in self._made:
            self._made[kind] = self._found(kind)
        return self._made[kind]

    def _is_allowed(self, kind: str) -> bool:
        return self._allowed is None or kind in self._allowed

    def _found(self, kind: str) -> MakeConnector:
        if not self._is_allowed(kind):
            raise ConnectorMissingError(
                f"connector {kind!r:.60} is not allowed at this gateway",
                hint="add it to `connectors` in the gateway's settings",
            )
        built_in = self._built_in.get(kind)
        if built_in is not None:
            return _imported(kind, built_in)
        entry = _installed().get(kind)
        if entry is None:
            known = ", ".join(self.kinds()) or "none"
            raise ConnectorMissingError(
                f"connector {kind!r:.60} is not installed at this gateway",
                hint=f"install the package that has it; installed: {known}",
            )
        return _loaded(kind, entry)


def _installed() -> "dict[str, EntryPoint]":
    """Return the entry points of other packages; of two of one kind the first counts."""
    from importlib.metadata import entry_points  # noqa: PLC0415  (1 MB that our own do not need)

    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=GROUP):
        found.setdefault(entry.name, entry)
    return found


def _imported(kind: str, built_in: BuiltIn) -> MakeConnector:
    try:
        module = import_module(built_in.module)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] == __name__.split(".", maxsplit=1)[0]:
            raise
        extra = f"'pando[{built_in.extra}]'" if built_in.extra else str(error.name)
        raise ConnectorMissingError(
            f"connector {kind} needs the library {error.name}, which is not installed here",
            hint=f"pip install {extra}, and restart the gateway",
        ) from error
    return _checked(kind, getattr(module, built_in.name))


def _loaded(kind: str, entry: "EntryPoint") -> MakeConnector:
    try:
        return _checked(kind, entry.load())
    except ConnectorMissingError:
        raise
    except Exception as error:  # code of others, with whatever it needs
        raise ConnectorMissingError(
            f"connector {kind} ({entry.value:.200}) cannot be loaded: "
            f"{type(error).__name__}: {error!s:.300}",
            hint="install what it needs, and restart the gateway",
        ) from error


def _checked(kind: str, made: object) -> MakeConnector:
    """Return a connector's class.

    Raises:
        ConnectorMissingError: It is no connector; says what is missing.
    """
    for name in ("endpoint_options", "source_options"):
        options = getattr(made, name, None)
        if not (isinstance(options, type) and issubclass(options, msgspec.Struct)):
            raise ConnectorMissingError(f"connector {kind}: {name} is no msgspec.Struct")
    if not callable(made) or not callable(getattr(made, "run", None)):
        raise ConnectorMissingError(f"connector {kind} is no class with a method `run`")
    return cast("MakeConnector", made)
