"""Variables of an OPC UA server below Objects, as offers, by the object that has them."""

import re
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
from asyncua import ua
from asyncua.client.client import Client
from asyncua.common.node import Node
from asyncua.ua.uaerrors import UaError

from gateway.connectors.browsing import BrowseContext
from gateway.connectors.opcua.observed_nodes import plain_value
from host.files.settings_file import require
from streamsql.data.types import DataType
from streamsql.mapping.offers import (
    MAX_RECORD_VALUES,
    MAX_VALUES,
    OfferedRecord,
    OfferedValue,
    sample_of,
)

MAX_DEPTH = 8
MAX_OBJECTS = 2_000
"""Objects that are looked into."""
READ_AT_ONCE = 100
_NODE_ID = re.compile(r"(ns=\d+;)?[isgb]=.+")
_UNITS = "EngineeringUnits"
_INTEGERS = frozenset(
    {
        ua.VariantType.SByte,
        ua.VariantType.Byte,
        ua.VariantType.Int16,
        ua.VariantType.UInt16,
        ua.VariantType.Int32,
        ua.VariantType.UInt32,
        ua.VariantType.Int64,
        ua.VariantType.UInt64,
    }
)
_TYPES = {
    ua.VariantType.Boolean: DataType.BOOLEAN,
    ua.VariantType.Float: DataType.DOUBLE,
    ua.VariantType.Double: DataType.DOUBLE,
    ua.VariantType.DateTime: DataType.TIMESTAMP,
    ua.VariantType.String: DataType.TEXT,
    ua.VariantType.LocalizedText: DataType.TEXT,
}


class OpcuaBrowse(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of a listing: the node at which it begins.

    Attributes:
        below: Node id of an object; empty: Objects, without what is of the standard itself.
    """

    below: str = ""

    def __post_init__(self) -> None:
        require(
            not self.below or _NODE_ID.fullmatch(self.below) is not None,
            "below must be a node id, such as 'ns=2;s=Line'",
        )


class _Place(NamedTuple):
    node: Node
    name: str
    depth: int


async def offer_variables(client: Client, context: BrowseContext) -> None:
    """Offer the variables of each object, the outer ones first.

    Raises:
        UaError: The server refuses, or there is no such node.
        OSError: The connection is lost.
    """
    below = context.options_as(OpcuaBrowse).below
    top = client.get_node(below) if below else client.nodes.objects
    name = str((await top.read_browse_name()).Name)
    places = deque([_Place(top, name, 0)])
    seen, left = {top.nodeid}, MAX_VALUES
    for _ in range(MAX_OBJECTS):
        if not places or left <= 0:
            break
        place = places.popleft()
        variables: list[tuple[Node, str]] = []
        for found in await place.node.get_children_descriptions():
            node = client.get_node(found.NodeId)
            # What the standard itself has, such as the server's state, is in namespace 0.
            if node.nodeid in seen or (not below and node.nodeid.NamespaceIndex == 0):
                continue
            seen.add(node.nodeid)
            name = str(found.BrowseName.Name)
            if found.NodeClass == ua.NodeClass.Variable:
                variables.append((node, name))
            elif found.NodeClass == ua.NodeClass.Object and place.depth < MAX_DEPTH:
                places.append(_Place(node, name, place.depth + 1))
        if variables:
            left -= await _offer(client, context, place.name, variables[: min(left, 1_000)])
    if places:
        context.note("there are more nodes; choose where the listing begins: below = 'ns=2;s=…'")


async def _offer(
    client: Client, context: BrowseContext, name: str, variables: Sequence[tuple[Node, str]]
) -> int:
    """Offer the variables of an object; return how many."""
    offered: list[OfferedValue] = []
    for start in range(0, len(variables), READ_AT_ONCE):
        part = variables[start : start + READ_AT_ONCE]
        values = await client.read_attributes([node for node, _ in part])
        for (node, called), value in zip(part, values, strict=True):
            one = _offered(node, called, value)
            if one is not None:
                unit = await _unit_of(node)
                offered.append(msgspec.structs.replace(one, unit=unit))
    for start in range(0, len(offered), MAX_RECORD_VALUES):
        context.offer(OfferedRecord(name, tuple(offered[start : start + MAX_RECORD_VALUES])))
    return len(offered)


def _offered(node: Node, name: str, value: ua.DataValue) -> OfferedValue | None:
    """Return what a variable offers; None where it is no single value."""
    variant = value.Value
    if variant is None or variant.is_array:
        return None
    is_whole = variant.VariantType in _INTEGERS
    dtype = DataType.INTEGER if is_whole else _TYPES.get(variant.VariantType)
    if dtype is None and variant.Value is not None:
        return None  # structures, and what only programs understand
    sample = sample_of(plain_value(variant.Value))
    return OfferedValue(name, node.nodeid.to_string(), dtype, sample=sample)


async def _unit_of(node: Node) -> str:
    try:
        units = await (await node.get_child(f"0:{_UNITS}")).read_value()
    except UaError:
        return ""
    return str(getattr(getattr(units, "DisplayName", None), "Text", None) or "")
