"""A simulated network in virtual time: whoever is first in time moves first."""

from collections import deque
from collections.abc import Callable, Sequence

from federated_optimizer.statistics.default_facts import HOP_MILLISECONDS, STEP_SECONDS
from stream_engine.simulation.network import CONSOLE, Network

STEP = 1_000 * STEP_SECONDS.value


class TimedNetwork(Network):
    """Sites that step a tick after something has come, and messages that take a time for each link.

    Attributes:
        answered: Milliseconds from the last `begin` until the console heard the last row; None: it
            has heard nothing.
    """

    def __init__(self, sites: Sequence[str], distance: Callable[[str, str], float]) -> None:
        super().__init__(sites)
        self.answered: float | None = None
        self._complete = False
        self._distance = distance
        self._clocks = dict.fromkeys((*sites, CONSOLE), 0.0)
        self._arrivals: dict[tuple[str, str], deque[float]] = {}

    def begin(self) -> None:
        """Set all clocks to nothing; the network is at rest, and loses nothing from now on."""
        self.answered = None
        self._complete = True
        self._clocks = dict.fromkeys(self._clocks, 0.0)

    def send_anew(self, query: str, site: str) -> None:
        """Let a site send all that its receivers have of it once more, as it does now and then."""
        for sender, receiver in tuple(self.traffic.messages):
            if sender == site and receiver not in (CONSOLE, site):
                self.sites[site].resync(query, receiver)
                self._to_step[site] = None

    def act(self, *, faulty: bool = True) -> bool:
        """Do what is first in time; return whether there was anything to do."""
        arriving = min(self._under_way(), default=None)
        stepping = min(((self._clocks[site] + STEP, site) for site in self._to_step), default=None)
        if arriving is not None and (stepping is None or arriving[0] <= stepping[0]):
            self._arrive(*arriving, faulty=faulty)
        elif stepping is not None:
            self._take_step(*stepping)
        return arriving is not None or stepping is not None

    def _under_way(self) -> list[tuple[float, tuple[str, str]]]:
        """Return when the first message of each channel arrives."""
        found = []
        for channel, queue in self._channels.items():
            if not queue:
                continue
            sender, receiver = channel
            times = self._arrivals.setdefault(channel, deque())
            way = 0.0 if receiver in (CONSOLE, sender) else self._distance(sender, receiver)
            while len(times) < len(queue):
                times.append(self._clocks[sender] + way * HOP_MILLISECONDS.value)
            found.append((times[0], channel))
        return found

    def _repair(self) -> bool:
        return not self._complete and super()._repair()

    def _arrive(self, time: float, channel: tuple[str, str], *, faulty: bool) -> None:
        sender, receiver = channel
        self._arrivals[channel].popleft()
        if receiver not in self._to_step:  # else it steps a tick after what came first
            self._clocks[receiver] = time
        if receiver == CONSOLE:
            self.answered = time
        self._deliver(sender, receiver, faulty=faulty)

    def _take_step(self, time: float, name: str) -> None:
        del self._to_step[name]
        self._clocks[name] = time
        site = self.sites[name]
        self._collect(name, self.step(name))
        if site.queues.batches:
            self._to_step[name] = None
