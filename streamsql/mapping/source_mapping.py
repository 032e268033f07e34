"""Mapping of CREATE SOURCE from a device's payload to rows."""

from enum import StrEnum

import msgspec

from streamsql.data.types import Value


class PayloadFormat(StrEnum):
    """Format of payloads. `FIELDS`: the connector hands over values by their addresses."""

    JSON = "json"
    TEXT = "text"
    CSV = "csv"
    SENML = "senml"
    SENML_CBOR = "senml+cbor"
    SPARKPLUG = "sparkplug"
    CBOR = "cbor"
    XML = "xml"
    HTML = "html"
    FIELDS = "fields"


SPARKPLUG_IDENTITY = ("group", "node", "device")
"""Facts of every row of Sparkplug; each feeds the column of its name. Of a node's own row the
device is empty."""


class ColumnMapping(msgspec.Struct, frozen=True, omit_defaults=True):
    """Mapping of one column: the place of its value, and the conversion.

    A value is read as FORMAT says, looked up among `values`, multiplied by `scale`, shifted by
    `offset`, and converted from `unit_in` to `unit`, in this order.

    Attributes:
        path: The text of FROM: a field path, `$.` and a path from the payload's root, `@` and a
            fact of the message, or the connector's own address. Empty: the topic's level of the
            column's name, or else the field of that name.
        format: Of a number ("comma", "hex", …), a time ("iso", "%d.%m.%Y", …) or, with a connector
            that reads registers, the device's data type. Empty: as it comes.
        zone: IANA name of the zone of times that name none. Empty: UTC.
        unit_in: Unit of the device's values (SenML's names); empty: that of the column.
        unit: Unit of the column's values; empty: none is declared.
        values: What the device says, as text, and what the column holds for it.
    """

    path: str = ""
    format: str = ""
    zone: str = ""
    unit_in: str = ""
    unit: str = ""
    scale: float = 1.0
    offset: float = 0.0
    values: tuple[tuple[str, Value], ...] = ()


class SourceMapping(msgspec.Struct, frozen=True, omit_defaults=True):
    """Mapping of a source from payloads of devices to rows.

    Attributes:
        connector: Kind of the connector, such as "mqtt".
        endpoint: Name that a gateway resolves to address and secret; empty: the only endpoint of
            the connector's kind there.
        gateways: Which gateways serve it; empty: all that have the endpoint.
        rows: Path of the array or object whose elements are rows; empty: a payload is a row.
        only: Fields that a payload must have, each with the text that it must equal or None;
            payloads without are ignored.
        only_rows: Conditions on the fields of a row: path, operator (empty: it has a value), and
            text; rows that do not meet all are ignored.
        delimiter: Between the values of a CSV line.
        header: Whether a CSV payload begins with the names of its columns.
        columns: One for each column of the source's schema, in its order.
        options: What the connector itself is told: topic, url, interval, ….
    """

    connector: str
    endpoint: str = ""
    gateways: tuple[str, ...] = ()
    format: PayloadFormat = PayloadFormat.JSON
    rows: str = ""
    only: tuple[tuple[str, str | None], ...] = ()
    only_rows: tuple[tuple[str, str, str], ...] = ()
    delimiter: str = ","
    header: bool = True
    columns: tuple[ColumnMapping, ...] = ()
    options: tuple[tuple[str, str], ...] = ()

    def option(self, name: str) -> str | None:
        """Return an option of the connector."""
        return dict(self.options).get(name)
