"""Windows by time as stretches of event time that move with the clock."""

from collections.abc import Callable
from dataclasses import dataclass

from stream_engine.operators.windows.time_window import (
    RangeWindow,
    SteppedWindow,
    current_second,
    sliding,
)
from streamsql.algebra.operators import Window, WindowBounds, WindowKind
from streamsql.data.types import MICROSECONDS
from streamsql.errors import InternalError

ALWAYS = 2**63
"""A time after all others."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The stretch of event time that a window holds, as a function of the clock.

    Attributes:
        at: From the time to (low, high): rows with low < event time <= high are inside.
        alone: Makes a private window operator.
        bounds: From an event time to when its row enters and leaves.
    """

    at: Callable[[int], tuple[int, int]]
    alone: Callable[[], RangeWindow | SteppedWindow]
    bounds: Callable[[int], tuple[int, int]]


def stretch_of(window: Window | WindowBounds) -> Stretch:
    """Return the stretch of a window by time.

    Raises:
        InternalError: It is another kind of window.
    """
    size, slide = window.size or 0, window.slide
    if window.kind == WindowKind.NOW:
        return _stepped(
            lambda now: (now // MICROSECONDS * MICROSECONDS - 1, _end_of_second(now)),
            current_second,
        )
    if window.kind != WindowKind.RANGE:
        raise InternalError(f"{window.kind} is no window by time")
    if slide:
        step = slide
        return _stepped(
            lambda now: (now // step * step - size, now // step * step), sliding(size, step)
        )
    return Stretch(
        lambda now: (now - size, ALWAYS),
        lambda: RangeWindow(size),
        lambda ts: (-ALWAYS, ts + size),
    )


def _stepped(
    at: Callable[[int], tuple[int, int]], bounds: Callable[[int], tuple[int, int]]
) -> Stretch:
    return Stretch(at, lambda: SteppedWindow(bounds), bounds)


def _end_of_second(now: int) -> int:
    return now // MICROSECONDS * MICROSECONDS + MICROSECONDS - 1
