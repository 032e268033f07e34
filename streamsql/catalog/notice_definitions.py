"""Definitions of displays and alarms."""

import enum

import msgspec


class Severity(enum.StrEnum):
    """How severe an alarm is."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class DisplayDefinition(msgspec.Struct, frozen=True):
    """A place in the building that shows the answers of the queries routed to it.

    Attributes:
        floor: Ordinal of the level, as on the map.
        x: Metres, as on the map.
        y: Metres, as on the map.
        title: Shown above the answers; empty for the name.
        rows: Max rows shown of each answer.
        text: The CREATE statement.
    """

    name: str
    floor: int
    x: float
    y: float
    title: str = ""
    rows: int = 12
    text: str = ""


class AlarmDefinition(msgspec.Struct, frozen=True):
    """A query whose rows raise an alarm.

    Attributes:
        query: The text after AS.
        hold: How long a row must have been there before it raises the alarm, in microseconds.
        text: The CREATE statement.
    """

    name: str
    query: str
    severity: Severity
    hold: int = 0
    text: str = ""

    @property
    def query_name(self) -> str:
        """The name its running query has; no query of a user can have one with a blank."""
        return f"alarm {self.name}"
