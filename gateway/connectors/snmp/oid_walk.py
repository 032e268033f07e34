"""Objects and tables of an SNMP agent below an OID, as offers."""

from collections.abc import Mapping

import msgspec

from gateway.connectors.browsing import BrowseContext
from gateway.connectors.snmp.agent import Agent, Oid, text_of_oid
from host.files.settings_file import require
from streamsql.data.types import DataType
from streamsql.mapping.offers import (
    MAX_RECORD_VALUES,
    MAX_VALUES,
    OfferedRecord,
    OfferedValue,
    sample_of,
)

MIB_2 = "1.3.6.1.2.1"
_NAMES = {
    "1.3.6.1.2.1.1.1": "sys_descr", "1.3.6.1.2.1.1.2": "sys_object_id",
    "1.3.6.1.2.1.1.3": "sys_up_time", "1.3.6.1.2.1.1.4": "sys_contact",
    "1.3.6.1.2.1.1.5": "sys_name", "1.3.6.1.2.1.1.6": "sys_location",
    "1.3.6.1.2.1.1.7": "sys_services", "1.3.6.1.2.1.2.1": "if_number",
    "1.3.6.1.2.1.2.2.1": "interfaces", "1.3.6.1.2.1.2.2.1.1": "if_index",
    "1.3.6.1.2.1.2.2.1.2": "if_descr", "1.3.6.1.2.1.2.2.1.3": "if_type",
    "1.3.6.1.2.1.2.2.1.4": "if_mtu", "1.3.6.1.2.1.2.2.1.5": "if_speed",
    "1.3.6.1.2.1.2.2.1.6": "if_phys_address", "1.3.6.1.2.1.2.2.1.7": "if_admin_status",
    "1.3.6.1.2.1.2.2.1.8": "if_oper_status", "1.3.6.1.2.1.2.2.1.9": "if_last_change",
    "1.3.6.1.2.1.2.2.1.10": "if_in_octets", "1.3.6.1.2.1.2.2.1.14": "if_in_errors",
    "1.3.6.1.2.1.2.2.1.16": "if_out_octets", "1.3.6.1.2.1.2.2.1.20": "if_out_errors",
    "1.3.6.1.2.1.33.1.2.4": "ups_charge", "1.3.6.1.2.1.99.1.1.1": "sensors",
    "1.3.6.1.2.1.99.1.1.1.1": "sensor_type", "1.3.6.1.2.1.99.1.1.1.2": "sensor_scale",
    "1.3.6.1.2.1.99.1.1.1.4": "sensor_value", "1.3.6.1.2.1.99.1.1.1.5": "sensor_status",
}  # fmt: skip
"""Of objects, columns and tables of RFC 1213, 1628 and 3433 (the agent tells numbers only)."""


class SnmpBrowse(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of a listing: the OID at which it begins.

    Attributes:
        below: An OID; that of the maker, `1.3.6.1.4.1.…`, has what only its devices have.
    """

    below: str = MIB_2

    def __post_init__(self) -> None:
        numbers = self.below.strip(".").split(".")
        require(
            1 < len(numbers) <= 128 and all(n.isdecimal() and len(n) <= 10 for n in numbers),
            f"below must be an OID, such as {MIB_2}",
        )

    @property
    def oid(self) -> Oid:
        """The OID as numbers."""
        return tuple(map(int, self.below.strip(".").split(".")))


async def offer_objects(agent: Agent, context: BrowseContext) -> None:
    """Offer what the agent has below an OID.

    Objects whose OID ends in 0 are one record. Others are taken for cells of tables: their OID ends
    in the column and a number for the row.

    Raises:
        ConnectionError: The agent does not answer, or refuses us.
    """
    root = context.options_as(SnmpBrowse).oid
    rows = await agent.column(root, context.note, limit=MAX_VALUES)
    found = {root + rest: value for rest, value in rows.items() if rest}
    alone = {oid: value for oid, value in found.items() if oid[-1] == 0}
    values = [
        OfferedValue(_name(oid[:-1]), text_of_oid(oid), _type(value), sample=sample_of(value))
        for oid, value in alone.items()
    ]
    for start in range(0, len(values), MAX_RECORD_VALUES):
        context.offer(OfferedRecord("agent", tuple(values[start : start + MAX_RECORD_VALUES])))
    for table, columns in _tables(found).items():
        context.offer(_table(table, columns))


def _tables(found: Mapping[Oid, object]) -> dict[Oid, dict[Oid, tuple[int, object]]]:
    """Return of each table the columns, with the row and value of their first cell."""
    tables: dict[Oid, dict[Oid, tuple[int, object]]] = {}
    for oid, value in found.items():
        if oid[-1] != 0:
            tables.setdefault(oid[:-2], {}).setdefault(oid[:-1], (oid[-1], value))
    return tables


def _table(table: Oid, columns: Mapping[Oid, tuple[int, object]]) -> OfferedRecord:
    row = min(place for place, _ in columns.values())
    cells = [
        OfferedValue(_name(oid), text_of_oid(oid), _type(value), sample=sample_of(value))
        for oid, (place, value) in columns.items()
        if place == row or len(columns) == 1
    ]
    index = OfferedValue("row", "@index", DataType.TEXT, sample=str(row))
    return OfferedRecord(_name(table), (index, *cells[: MAX_RECORD_VALUES - 1]), key=("row",))


def _name(oid: Oid) -> str:
    """Return what an object is called; one that is not known by its last numbers."""
    known = _NAMES.get(text_of_oid(oid))
    return known or "oid_" + "_".join(map(str, oid[-3:]))


def _type(value: object) -> DataType:
    return DataType.INTEGER if isinstance(value, int) else DataType.TEXT
