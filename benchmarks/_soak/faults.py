"""Faults: what is done to a federation, for how long, and how it is taken back."""

import enum
import random
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks._soak.federation import BASE, CONSOLE, FAKED, STATIC, Federation
from benchmarks._soak.feed import GATEWAYS, PERIOD, SECOND
from gateway.testing import fill_disk

BROKER = "broker"
JUMP_SECONDS = 20
SHORTEST, LONGEST = 1.0, 12.0
"""Seconds of a fault: within the grace time, and well beyond it."""


class FaultKind(enum.StrEnum):
    """Kind of fault."""

    GATEWAY_KILLED = "gateway killed"
    GATEWAY_FROZEN = "gateway frozen"
    BASE_KILLED = "base killed"
    BASE_FROZEN = "base frozen"
    BROKER_KILLED = "broker killed"
    BROKER_RESTARTED = "broker restarted"
    BROKER_FROZEN = "broker frozen"
    CONSOLE_KILLED = "console killed"
    CONSOLE_FROZEN = "console frozen"
    STATIC_KILLED = "static engine killed"
    DISK_FULL = "disk full"
    DISK_FULL_KILLED = "disk full, then killed"
    CLOCK_AHEAD = "clock 20 s ahead"
    CLOCK_BEHIND = "clock 20 s behind"


QUICK = (
    FaultKind.GATEWAY_KILLED,
    FaultKind.BASE_KILLED,
    FaultKind.BROKER_RESTARTED,
    FaultKind.CLOCK_AHEAD,
)
"""Those of a first look."""

_ONE_OF: dict[FaultKind, tuple[str, ...]] = {
    FaultKind.GATEWAY_KILLED: GATEWAYS,
    FaultKind.GATEWAY_FROZEN: GATEWAYS,
    FaultKind.BASE_KILLED: (BASE,),
    FaultKind.BASE_FROZEN: (BASE,),
    FaultKind.BROKER_KILLED: (BROKER,),
    FaultKind.BROKER_RESTARTED: (BROKER,),
    FaultKind.BROKER_FROZEN: (BROKER,),
    FaultKind.CONSOLE_KILLED: (CONSOLE,),
    FaultKind.CONSOLE_FROZEN: (CONSOLE,),
    FaultKind.STATIC_KILLED: (STATIC,),
    FaultKind.DISK_FULL: (*GATEWAYS, BASE),
    FaultKind.DISK_FULL_KILLED: (*GATEWAYS, BASE),
    FaultKind.CLOCK_AHEAD: (FAKED,),
    FaultKind.CLOCK_BEHIND: (FAKED,),
}
_DISK = (FaultKind.DISK_FULL, FaultKind.DISK_FULL_KILLED)
CLOCK = (FaultKind.CLOCK_AHEAD, FaultKind.CLOCK_BEHIND)


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault to be."""

    kind: FaultKind
    target: str
    seconds: float

    @property
    def touches(self) -> frozenset[str]:
        """The sites that others may miss while it lasts."""
        return frozenset(GATEWAYS) | {BASE} if self.target == BROKER else frozenset({self.target})

    @property
    def loses(self) -> bool:
        """Whether this fault may lose readings, so that a gap must be named."""
        return self.kind in _DISK or self.target in (BASE, BROKER)

    def begin(self, federation: Federation) -> None:
        """Do it."""
        match self.kind:
            case FaultKind.BROKER_KILLED:
                federation.broker.stop(signal.SIGKILL)
            case FaultKind.BROKER_RESTARTED:
                federation.broker.stop()
            case FaultKind.BROKER_FROZEN:
                federation.broker.freeze()
            case FaultKind.DISK_FULL:
                fill_disk(federation.data(self.target) / "other")
            case FaultKind.DISK_FULL_KILLED:
                fill_disk(federation.data(self.target) / "other")
                time.sleep(PERIOD / SECOND)  # a round comes in that cannot be written down
                federation.services[self.target].stop(signal.SIGKILL)
                federation.services[self.target].start()
            case FaultKind.CLOCK_AHEAD:
                federation.set_clock(JUMP_SECONDS)
            case FaultKind.CLOCK_BEHIND:
                federation.set_clock(-JUMP_SECONDS)
            case FaultKind.GATEWAY_FROZEN | FaultKind.BASE_FROZEN | FaultKind.CONSOLE_FROZEN:
                federation.services[self.target].freeze()
            case _:
                federation.services[self.target].stop(signal.SIGKILL)

    def end(self, federation: Federation) -> None:
        """Take it back."""
        match self.kind:
            case FaultKind.BROKER_KILLED | FaultKind.BROKER_RESTARTED:
                federation.broker.start()
            case FaultKind.BROKER_FROZEN:
                federation.broker.thaw()
            case FaultKind.DISK_FULL | FaultKind.DISK_FULL_KILLED:
                (federation.data(self.target) / "other").unlink()
            case FaultKind.CLOCK_AHEAD | FaultKind.CLOCK_BEHIND:
                federation.set_clock(0)
            case FaultKind.GATEWAY_FROZEN | FaultKind.BASE_FROZEN | FaultKind.CONSOLE_FROZEN:
                federation.services[self.target].thaw()
            case _:
                federation.services[self.target].start()


def impossible(federation: Federation) -> dict[FaultKind, str]:
    """Return the faults that cannot be made on this machine, and why."""
    found: dict[FaultKind, str] = {}
    if not federation.has_disks:
        found |= dict.fromkeys(_DISK, "mounting a small disk needs rights this process lacks")
    if not federation.has_clock:
        found |= dict.fromkeys(CLOCK, "libfaketime is not installed")
    return found


def faults(seed: int, kinds: tuple[FaultKind, ...]) -> Iterator[Fault]:
    """Yield faults without end: all kinds in an order by chance, then all again."""
    choice = random.Random(seed)
    while True:
        for kind in choice.sample(kinds, len(kinds)):
            seconds = round(choice.uniform(SHORTEST, LONGEST), 1)
            yield Fault(kind, choice.choice(_ONE_OF[kind]), seconds)
