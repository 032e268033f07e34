"""How often a site says that it is there, and how long silence is no sign of its end.

A site publishes its state as a retained message; its will replaces that when it vanishes. A state
that was retained before we subscribed, or known before we lost the broker, may be out of date: a
site that ended while the broker was away has left no will. Such a state is trusted for a while.
"""

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass

HEARTBEAT_SECONDS = 10.0
"""Between two states of a site that says nothing else."""

TRUST_SECONDS = 25.0
"""For which a state is trusted that was not heard live: two heartbeats and a half."""

LONGEST_PAUSE = 600.0
"""Seconds between two repetitions of what does not change, at most."""


class Repetitions:
    """When to repeat messages that a broker may have dropped: after a pause, which doubles.

    Args:
        pause: Seconds from what was told to its first repetition.
    """

    def __init__(self, pause: float) -> None:
        self._pause = pause
        self._next: dict[str, tuple[float, float]] = {}

    def told(self, names: Iterable[str], now: float) -> None:
        """Note that these were told; `now` in seconds of a clock that only goes forward."""
        self._next.update(dict.fromkeys(names, (now + self._pause, self._pause)))

    @property
    def next_due(self) -> float:
        """When the first of them is to be repeated; infinite: none is."""
        return min((moment for moment, _pause in self._next.values()), default=math.inf)

    def due(self, now: float) -> list[str]:
        """Return what is to be repeated."""
        return [name for name, (moment, _pause) in self._next.items() if moment <= now]

    def repeated(self, name: str, now: float) -> None:
        """Note that this was told again as it was."""
        pause = min(self._next[name][1] * 2, LONGEST_PAUSE)
        self._next[name] = (now + pause, pause)

    def keep(self, names: Collection[str]) -> None:
        """Repeat no others than these any more."""
        for name in [name for name in self._next if name not in names]:
            del self._next[name]


@dataclass(slots=True)
class Trust:
    """How far what a site was heard to say is trusted. Moments are microseconds of one clock.

    Attributes:
        epoch: The newest that was heard; what has an older one is ignored, above all a late will.
        doubted_since: Since when it was not heard live; None once it was.
        out_of_touch: Not heard live since the broker was away.
    """

    epoch: int = -1
    doubted_since: int | None = None
    out_of_touch: bool = False

    def hear(self, epoch: int, retained_at: int | None = None) -> bool:
        """Hear a state; return False for one of an earlier incarnation.

        Args:
            epoch: Of the state.
            retained_at: Now, if the broker had retained it; None if it came live. A retained state
                comes again with every subscription: only a new epoch begins a doubt.
        """
        if epoch < self.epoch:
            return False
        if retained_at is None:
            self.confirm()
        elif epoch > self.epoch:
            self.doubted_since = retained_at
        self.epoch = epoch
        return True

    def confirm(self) -> None:
        """Note that the present incarnation was heard live."""
        self.doubted_since, self.out_of_touch = None, False

    def lose_touch(self, moment: int) -> None:
        """Doubt what is known: the broker was away."""
        self.doubted_since, self.out_of_touch = moment, True

    @property
    def ends(self) -> int | None:
        """When what is known is trusted no longer, unless it is confirmed before; None: never."""
        if self.doubted_since is None:
            return None
        return self.doubted_since + int(TRUST_SECONDS * 1_000_000)

    def has_ended(self, moment: int) -> bool:
        """Whether trust has ended; asked again, this is False until there is another doubt."""
        ends = self.ends
        if ends is None or moment < ends:
            return False
        self.doubted_since = None
        return True
