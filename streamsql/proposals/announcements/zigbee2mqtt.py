"""Zigbee2MQTT's list of devices on `zigbee2mqtt/bridge/devices`: models and what they expose.

https://www.zigbee2mqtt.io/guide/usage/mqtt_topics_and_messages.html#zigbee2mqtt-bridge-devices
"""

from collections.abc import Iterator, Mapping

from streamsql.data.types import DataType
from streamsql.proposals.announcements.announced import (
    AnnouncedDevice,
    json_of,
    number_column,
    plain_column,
    switch_column,
    text_in,
)
from streamsql.proposals.payload_fields import path_text
from streamsql.proposals.proposal import ProposedColumn
from streamsql.proposals.sample import Sample
from streamsql.proposals.topic_shapes import identifier

MAX_DEVICES = 5_000
MAX_EXPOSED = 60
_END = "/bridge/devices"
_PUBLISHED = 1
"""Bit of `access`: the value is in the published state."""
_WHOLE_NUMBERS = ("linkquality",)
_MAX_LEVELS = 4

_Steps = tuple[str, ...]


def announced_devices(sample: Sample) -> list[AnnouncedDevice]:
    """Return the devices of a list; nothing if it is none."""
    base = sample.topic.removesuffix(_END)
    listed = json_of(sample) if base != sample.topic else None
    if not isinstance(listed, list):
        return []
    found = (_device(each, base) for each in listed[:MAX_DEVICES] if isinstance(each, dict))
    return [device for device in found if device is not None]


def _device(listed: Mapping[str, object], base: str) -> AnnouncedDevice | None:
    definition = listed.get("definition")
    name = text_in(listed, "friendly_name")
    if not isinstance(definition, dict) or not name or listed.get("disabled") is True:
        return None
    columns: dict[str, ProposedColumn] = {}
    for column in _columns(definition.get("exposes"), ()):
        if len(columns) < MAX_EXPOSED:
            columns.setdefault(column.name, column)
    if not columns:
        return None
    model, vendor = text_in(definition, "model"), text_in(definition, "vendor")
    about = text_in(definition, "description")
    title = " ".join(filter(None, (vendor, model, f"({about})" if about else "")))
    levels = name.split("/")
    # A friendly name may have levels of its own: floor/lamp.
    names = [*(f"{{group_{n}}}" for n in range(1, len(levels))), "{device}"]
    pattern = "/".join((base, *names))
    return AnnouncedDevice(
        title or name,
        identifier(about) or identifier(model) or "zigbee",
        name,
        f"{base}/{name}",
        tuple(columns.values()),
        pattern=pattern,
        availability=f"{pattern}/availability",
        base=base,
    )


def _columns(exposes: object, outer: _Steps) -> Iterator[ProposedColumn]:
    if not isinstance(exposes, list) or len(outer) > _MAX_LEVELS:
        return
    for exposed in exposes:
        if not isinstance(exposed, dict):
            continue
        steps = outer
        own = text_in(exposed, "property")
        if "features" in exposed:
            yield from _columns(exposed["features"], (*outer, own) if own else outer)
            continue
        access = exposed.get("access", _PUBLISHED)
        if own and isinstance(access, int) and access & _PUBLISHED:
            steps = (*outer, own)
            column = _column(exposed, identifier("_".join(steps)), path_text(steps))
            if column is not None:
                yield column


def _column(exposed: Mapping[str, object], name: str, path: str) -> ProposedColumn | None:
    if not name:
        return None
    match exposed.get("type"):
        case "numeric" if name in _WHOLE_NUMBERS:
            return plain_column(name, path, DataType.INTEGER)
        case "numeric":
            return number_column(name, path, text_in(exposed, "unit"))
        case "binary":
            return switch_column(name, path, exposed.get("value_on"), exposed.get("value_off"))
        case "enum" | "text":
            return plain_column(name, path, DataType.TEXT)
        case _:
            return None
