"""Wrappers by kind; each is imported only where used, so a gateway loads no more than it needs."""

from collections.abc import Callable

from gateway.settings import WrapperSettings
from gateway.wrappers.wrapper import Wrapper
from streamsql.catalog.wrappers import WrapperKind
from streamsql.errors import DeploymentError


def _motes() -> Wrapper:
    from gateway.wrappers.motes.wrapper import MotesWrapper  # noqa: PLC0415

    return MotesWrapper()


def _soft_sensors() -> Wrapper:
    from gateway.wrappers.soft_sensors import SoftSensorsWrapper  # noqa: PLC0415

    return SoftSensorsWrapper()


def _calendar() -> Wrapper:
    from gateway.wrappers.calendar.wrapper import CalendarWrapper  # noqa: PLC0415

    return CalendarWrapper()


def _replay() -> Wrapper:
    from gateway.wrappers.recordings.wrapper import ReplayWrapper  # noqa: PLC0415

    return ReplayWrapper()


KINDS: dict[str, Callable[[], Wrapper]] = {
    WrapperKind.MOTES: _motes,
    WrapperKind.SOFT_SENSORS: _soft_sensors,
    WrapperKind.CALENDAR: _calendar,
    WrapperKind.REPLAY: _replay,
}


def make_wrapper(settings: WrapperSettings) -> Wrapper:
    """Return a new wrapper of the kind that settings name.

    Raises:
        DeploymentError: There is no such kind.
    """
    factory = KINDS.get(settings.kind)
    if factory is None:
        raise DeploymentError(
            f"there is no wrapper {settings.kind!r:.60}", hint=f"known: {', '.join(sorted(KINDS))}"
        )
    return factory()
