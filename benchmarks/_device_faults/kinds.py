"""The ten connectors: how each reads the device of its kind, and what its protocol promises."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from benchmarks._device_faults.peers.http_push import BATCH, TOKEN
from benchmarks._device_faults.peers.mqtt import IN_FLIGHT
from benchmarks._device_faults.peers.peer import LANES
from benchmarks._device_faults.peers.snmp import COLUMN
from broker.free_ports import free_port

POLLED = "interval = '0.1 s'"
TIMEOUT = 5.0
"""Seconds that a device may take to answer. An answer that comes later is thrown away, so a number
in it is lost without any kill."""


class Promise(StrEnum):
    """When a number counts as acknowledged, so that it must not be lost."""

    ANSWERED = "the gateway has acknowledged it"
    STORED = "the device has stored it where the gateway reads"
    ASKED_AGAIN = "the same gateway process has asked for the next one"
    STANDING = "it is the device's last one"


@dataclass(frozen=True)
class Kind:
    """A connector and its device.

    Attributes:
        name: Of the connector, and of the simulator in `peers`.
        promise: See there.
        endpoint: Settings of the endpoint, from port and data folder.
        sources: (name, columns and options) of the statements.
        most: Numbers a second that the device can hand out; None: as many as wanted.
        window: Numbers under way that may come twice when the gateway is killed.
        device_window: The same when the device is killed.
        logs_offers: Whether the device knows how often it has handed a number out.
    """

    name: str
    promise: Promise
    endpoint: Callable[[int, Path], dict[str, Any]]
    sources: tuple[tuple[str, str], ...]
    most: float | None
    window: int = 0
    device_window: int = 0
    logs_offers: bool = True

    def statements(self) -> str:
        """Return the CREATE SOURCE statements."""
        return ";\n".join(
            f"CREATE SOURCE {name} ({columns}) WITH (connector = '{self.name}', "
            f"endpoint = '{self.name}', {options})"
            for name, declared in self.sources
            for columns, _, options in (declared.partition(" | "),)
        )

    def rows(self) -> str:
        """Return a subquery of all rows."""
        parts = (f"SELECT n FROM {name}" for name, _ in self.sources)
        return f"({' UNION ALL '.join(parts)}) AS rows_of_all"


def _lanes(name: str, columns: str) -> tuple[tuple[str, str], ...]:
    return tuple(
        (f"{name}_{lane}", columns.replace("LANE", str(lane)) + f" | {POLLED}")
        for lane in range(LANES)
    )


def _bacnet(port: int, _folder: Path) -> dict[str, Any]:
    local = f"127.0.0.1/24:{free_port()}"
    return {"address": f"127.0.0.1:{port}", "local": local, "timeout": TIMEOUT}


KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "mqtt",
            Promise.ANSWERED,
            lambda port, _: {"address": f"mqtt://127.0.0.1:{port}"},
            (("mqtt_numbers", "n INTEGER | topic = 'numbers/+'"),),
            None,
            IN_FLIGHT,
            2 * IN_FLIGHT,  # what the device sends again, and what its broker does
        ),
        Kind(
            "http_push",
            Promise.ANSWERED,
            lambda port, _: {"port": port, "token": TOKEN},
            (("push_numbers", "n INTEGER | path = 'pushed'"),),
            None,
            BATCH,
            BATCH,
        ),
        Kind(
            "file",
            Promise.STORED,
            lambda _, folder: {"folder": str(folder)},
            (("file_numbers", f"n INTEGER | files = '*.jsonl', {POLLED}"),),
            None,
        ),
        Kind(
            "sql",
            Promise.STORED,
            lambda _, folder: {"url": f"sqlite:///{folder}/numbers.db"},
            (("sql_numbers", f"n INTEGER | table = 'numbers', watermark = 'id', {POLLED}"),),
            None,
        ),
        Kind(
            "http",
            Promise.ASKED_AGAIN,
            lambda port, _: {"url": f"http://127.0.0.1:{port}", "timeout": TIMEOUT},
            (("http_numbers", f"n INTEGER | path = '/numbers', rows = 'rows[*]', {POLLED}"),),
            1_000,
        ),
        Kind(
            "modbus",
            Promise.ASKED_AGAIN,
            lambda port, _: {"host": "127.0.0.1", "port": port, "timeout": TIMEOUT},
            (
                (
                    "modbus_numbers",
                    f"n INTEGER FROM 'holding:0' FORMAT 'uint32' | unit = '1..20', {POLLED}",
                ),
            ),
            180,
        ),
        Kind(
            "snmp",
            Promise.ASKED_AGAIN,
            lambda port, _: {
                "host": "127.0.0.1",
                "port": port,
                "community": "pdu",
                "timeout": TIMEOUT,
            },
            (
                (
                    "snmp_numbers",
                    f"port INTEGER FROM '@index', n INTEGER FROM '{COLUMN}' | {POLLED}",
                ),
            ),
            180,
        ),
        Kind(
            "bacnet",
            Promise.ASKED_AGAIN,
            _bacnet,
            tuple(
                (name, f"{declared}, cov = 'no'")
                for name, declared in _lanes("bacnet", "n INTEGER FROM 'analog-value:LANE'")
            ),
            90,
        ),
        Kind(
            "opcua",
            Promise.STANDING,
            lambda port, _: {"url": f"opc.tcp://127.0.0.1:{port}/counter"},
            _lanes("opcua", "n INTEGER FROM 'ns=2;s=nLANE'"),
            60,
            LANES,
            LANES,
            logs_offers=False,
        ),
        Kind(
            "coap",
            Promise.STANDING,
            lambda port, _: {"url": f"coap://127.0.0.1:{port}", "timeout": TIMEOUT},
            (
                (
                    "coap_numbers",
                    f"n INTEGER | path = '{', '.join(f'n{lane}' for lane in range(LANES))}'",
                ),
            ),
            100,
            LANES,
            LANES,
        ),
    )
}
