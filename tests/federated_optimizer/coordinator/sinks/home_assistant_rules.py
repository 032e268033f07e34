"""What Home Assistant accepts in a discovery message, as its documentation said in 2026.

Recorded from https://www.home-assistant.io/integrations/mqtt, /sensor.mqtt, /binary_sensor.mqtt and
/sensor (device classes and their units), and from its developers' page on sensors (state classes).
Only the device classes that our units stand for are listed.
"""

_SHARED = frozenset(
    {
        "availability",
        "availability_mode",
        "availability_template",
        "availability_topic",
        "default_entity_id",
        "device",
        "device_class",
        "enabled_by_default",
        "encoding",
        "entity_category",
        "entity_picture",
        "expire_after",
        "force_update",
        "icon",
        "json_attributes_template",
        "json_attributes_topic",
        "name",
        "origin",
        "payload_available",
        "payload_not_available",
        "platform",
        "qos",
        "state_topic",
        "unique_id",
        "value_template",
    }
)
KEYS = {
    "sensor": _SHARED
    | {
        "last_reset_value_template",
        "options",
        "state_class",
        "suggested_display_precision",
        "unit_of_measurement",
    },
    "binary_sensor": _SHARED | {"off_delay", "payload_off", "payload_on"},
}
"""Keys of a discovery message by component. `object_id` is none of them since Core 2026.4."""
DEVICE_KEYS = frozenset(
    {
        "configuration_url",
        "connections",
        "hw_version",
        "identifiers",
        "manufacturer",
        "model",
        "model_id",
        "name",
        "serial_number",
        "suggested_area",
        "sw_version",
        "via_device",
    }
)
ORIGIN_KEYS = frozenset({"name", "support_url", "sw_version"})
AVAILABILITY_KEYS = frozenset(
    {"payload_available", "payload_not_available", "topic", "value_template"}
)

_ENERGY = frozenset(
    "J kJ MJ GJ mWh Wh kWh MWh GWh TWh cal kcal Mcal Gcal".split()  # noqa: SIM905 - as it is there
)
UNITS = {
    "apparent_power": {"mVA", "VA"},
    "battery": {"%"},
    "conductivity": {"S/cm", "mS/cm", "µS/cm"},
    "current": {"A", "mA"},
    "data_size": {"bit", "kbit", "Mbit", "Gbit", "B", "kB", "MB", "GB", "TB", "PB"},
    "distance": {"km", "m", "cm", "mm", "mi", "nmi", "yd", "in"},
    "duration": {"d", "h", "min", "s", "ms", "µs"},
    "energy": _ENERGY,
    "frequency": {"Hz", "kHz", "MHz", "GHz"},
    "humidity": {"%"},
    "illuminance": {"lx"},
    "irradiance": {"W/m²", "BTU/(h⋅ft²)"},
    "power": {"mW", "W", "kW", "MW", "GW", "TW"},
    "pressure": {"Pa", "kPa", "hPa", "bar", "cbar", "mbar", "mmHg", "inHg", "psi"},
    "reactive_power": {"var", "kvar"},
    "signal_strength": {"dB", "dBm"},
    "sound_pressure": {"dB", "dBA"},
    "speed": {"ft/s", "in/d", "in/h", "in/s", "km/h", "kn", "m/s", "mph", "mm/d", "mm/s"},
    "temperature": {"°C", "°F", "K"},
    "timestamp": {None},
    "voltage": {"V", "mV", "µV", "kV", "MV"},
    "volume_flow_rate": {*("m³/h", "m³/s", "ft³/min", "L/h", "L/min", "L/s", "gal/min", "mL/s")},
    "weight": {"kg", "g", "mg", "µg", "oz", "lb", "st"},
}
"""Units by device class; None: it has none."""
STATE_CLASSES = {
    **{name: {"measurement"} for name in UNITS},
    "data_size": {"measurement", "total", "total_increasing"},
    "distance": {"measurement", "total", "total_increasing"},
    "duration": {"measurement", "total", "total_increasing"},
    "energy": {"total", "total_increasing"},
    "timestamp": set(),
    "weight": {"measurement", "total", "total_increasing"},
}
"""State classes by device class."""
