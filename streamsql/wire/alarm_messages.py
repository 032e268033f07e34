"""Changes of alarms, for those who keep their history. Times are microseconds since 1970 UTC."""

import msgspec

from streamsql.wire.bounds import Count, Name, Names, Time, WireRow


class AlarmChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """A row of an alarm was raised, acknowledged or cleared, or nobody knows whether it holds.

    Attributes:
        alarm: Name of the alarm.
        id: Of the row: the same from when it is raised until it is cleared.
        state: As in `federated_optimizer.alarm_life_cycle.AlarmState`.
        columns: Names of the row's columns.
        ts: When the change was published.
    """

    alarm: Name
    id: Count
    state: Name
    columns: Names
    row: WireRow
    ts: Time
    since: Time
    raised: Time | None = None
    acknowledged: Time | None = None
    cleared: Time | None = None
    unknown: Time | None = None
