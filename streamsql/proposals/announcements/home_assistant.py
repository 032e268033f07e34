"""Home Assistant's discovery: a retained message for each entity or device, of many makers.

https://www.home-assistant.io/integrations/mqtt/#mqtt-discovery, with its abbreviations.
"""

import re
from collections.abc import Mapping

from streamsql.data.types import DataType
from streamsql.mapping.field_path import parse_field_path
from streamsql.mapping.source_mapping import PayloadFormat
from streamsql.proposals.announcements.announced import (
    MAX_TEXT,
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

MAX_COMPONENTS = 200
"""Of a device."""

_TEMPLATE = re.compile(
    r"\{\{-?\s*value_json((?:\.\w+|\[['\"][^'\"\[\]]+['\"]\])+)\s*"
    r"(?:\|\s*(?:float|int|round|is_defined|default|string)(?:\([^()]*\))?\s*)*-?\}\}"
)
"""A field of the payload, perhaps behind filters that leave its meaning alone."""
_WHOLE = re.compile(r"\{\{-?\s*value\s*(?:\|\s*(?:float|int|round)(?:\([^()]*\))?\s*)*-?\}\}")
_STEP = re.compile(r"\.(\w+)|\[['\"]([^'\"\[\]]+)['\"]\]")
_SWITCHES = ("binary_sensor", "switch", "light", "fan", "siren", "lock", "input_boolean")
_WORDS = ("sensor", "text", "select", "number")
_STATES = ("state_on", "stat_on", "payload_on", "pl_on"), (
    "state_off", "stat_off", "payload_off", "pl_off"
)  # fmt: skip
_DEVICE = "device"
_COMPONENTS = ("components", "cmps")
_LOCK_STATES = ("state_locked", "stat_locked"), ("state_unlocked", "stat_unlocked")


def announced_entities(sample: Sample) -> list[AnnouncedDevice]:
    """Return the entities of a discovery message; none if it is no message of a known form.

    A message is one entity (`homeassistant/sensor/ID/config`), or a device with its components
    (`homeassistant/device/ID/config`), which share what stands beside them.
    """
    levels = sample.topic.split("/")
    if levels[-1] != "config" or not 4 <= len(levels) <= 5:
        return []
    config = json_of(sample)
    if not isinstance(config, dict):
        return []
    if levels[1] != _DEVICE:
        return _entity(levels[1], levels[-2], config)
    shared = {name: value for name, value in config.items() if name not in _COMPONENTS}
    components = _first(config, _COMPONENTS)
    found: list[AnnouncedDevice] = []
    for name, component in components.items() if isinstance(components, dict) else ():
        if len(found) >= MAX_COMPONENTS:
            break
        # One with its platform alone is removed.
        if isinstance(component, dict) and len(component) > 1:
            platform = text_in(component, "platform", "p")
            found += _entity(platform, str(name), {**shared, **component})
    return found


def _entity(component: str, entity: str, config: Mapping[str, object]) -> list[AnnouncedDevice]:
    if component not in (*_SWITCHES, *_WORDS):
        return []
    topic = _topic(config, "state_topic", "stat_t")
    template = text_in(config, "value_template", "val_tpl", "state_value_template", "stat_val_tpl")
    path = _path(template, is_light=component == "light" and config.get("schema") == "json")
    if not topic or path is None:
        return []
    name = identifier(path.rpartition(".")[2] or entity) or "value"
    column = _column(component, config, name, path)
    status = _availability(config)
    about = config.get("device", config.get("dev"))
    about = about if isinstance(about, dict) else {}
    device = text_in(about, "name") or text_in(config, "name") or entity[:MAX_TEXT]
    title = " ".join(
        word for word in (text_in(about, "manufacturer", "mf"), text_in(about, "model", "mdl"))
        if word
    )  # fmt: skip
    return [
        AnnouncedDevice(
            title or device,
            identifier(text_in(about, "model", "mdl")) or name,
            device,
            topic,
            (column,),
            PayloadFormat.JSON if path else PayloadFormat.TEXT,
            availability=_topic(status, "availability_topic", "avty_t", "topic", "t"),
            offline=text_in(status, "payload_not_available", "pl_not_avail"),
        )
    ]


def _column(component: str, config: Mapping[str, object], name: str, path: str) -> ProposedColumn:
    if component == "lock":
        yes, no = (_first(config, names) for names in _LOCK_STATES)
        return switch_column(name, path, yes or "LOCKED", no or "UNLOCKED")
    if component in _SWITCHES:
        yes, no = (_first(config, names) for names in _STATES)
        return switch_column(name, path, "ON" if yes is None else yes, "OFF" if no is None else no)
    kind = text_in(config, "device_class", "dev_cla")
    unit = text_in(config, "unit_of_measurement", "unit_of_meas")
    if kind == "timestamp":
        return plain_column(name, path, DataType.TIMESTAMP)
    has_numbers = unit or text_in(config, "state_class", "stat_cla") or component == "number"
    if has_numbers and kind != "enum":
        return number_column(name, path, unit)
    return plain_column(name, path, DataType.TEXT)


def _first(config: Mapping[str, object], names: tuple[str, ...]) -> object:
    return next((config[name] for name in names if name in config), None)


def _path(template: str, *, is_light: bool) -> str | None:
    """Return the field that a template names; empty: the whole payload; None: it does more."""
    if is_light and not template:
        return "state"
    if not template or _WHOLE.fullmatch(template):
        return ""
    found = _TEMPLATE.fullmatch(template)
    if found is None:
        return None
    path = path_text(tuple(a or b for a, b in _STEP.findall(found.group(1))))
    try:
        parse_field_path(path)
    except ValueError:
        return None
    return path


def _topic(config: Mapping[str, object], *names: str) -> str:
    """Return a topic; `~` in it stands for the base topic."""
    topic, base = text_in(config, *names), text_in(config, "~")
    if topic.startswith("~"):
        topic = base + topic[1:]
    elif topic.endswith("~"):
        topic = topic[:-1] + base
    return "" if set(topic) & set("+#\0") else topic


def _availability(config: Mapping[str, object]) -> Mapping[str, object]:
    """Return where and how an entity says that it is there."""
    several = config.get("availability", config.get("avty"))
    if not isinstance(several, list) or _topic(config, "availability_topic", "avty_t"):
        return {name: value for name, value in config.items() if name not in {"topic", "t"}}
    # The last is the device's own where the first is its bridge's.
    entries = [entry for entry in several if isinstance(entry, dict)]
    return {"~": config.get("~"), **entries[-1]} if entries else {}
