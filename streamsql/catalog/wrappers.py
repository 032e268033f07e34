"""The wrappers that feed sources; `gateway.wrappers.registry` makes them."""

from enum import StrEnum


class WrapperKind(StrEnum):
    """Wrappers that WITH (wrapper = …) and a gateway's settings may name."""

    MOTES = "motes"
    SOFT_SENSORS = "soft_sensors"
    CALENDAR = "calendar"
    REPLAY = "replay"
