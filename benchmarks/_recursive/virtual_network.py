"""Sites on a simulated network in virtual time: measured work, modelled wires.

What a site computes takes the processor time it really took here; a message takes the latency of
its wire and its bytes over the bandwidth. Two clusters as in the paper (section 3.7): gigabit
within a cluster, a shared 100 Mbit/s between them. Virtual time lets 24 sites work at once on two
cores.
"""

import heapq
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from stream_engine.operators.rows.operator import RecursiveMessage
from stream_engine.provenance import bdd
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.recursion.strategies import recursive_operator
from streamsql.algebra.operators import Fixpoint
from streamsql.data.delta import Delta
from streamsql.wire.codec import decode_packed, encode_packed
from streamsql.wire.messages import DeltaBatch

CLUSTER = 16
"""Sites of the first cluster."""


@dataclass(frozen=True, slots=True)
class Wire:
    """Seconds of latency, and bytes a second."""

    latency: float
    bandwidth: float


INSIDE = Wire(0.000_1, 125e6)
BETWEEN = Wire(0.000_5, 12.5e6)


@dataclass(frozen=True, slots=True)
class Costs:
    """The four metrics of the paper.

    Attributes:
        seconds: Until the last site has finished.
        bytes_per_site: Of the messages a site processed, on average.
        state_per_site: Bytes of operator state of a site, on average.
        provenance_per_row: Bytes of a view row's annotation, on average.
        finished: Whether it came to rest within the time limit.
        messages: Between sites.
    """

    seconds: float
    bytes_per_site: float
    state_per_site: float
    provenance_per_row: float
    finished: bool
    messages: int


@dataclass(order=True, slots=True)
class _Event:
    at: float
    number: int
    site: str = field(compare=False)
    sender: str = field(compare=False, default="")
    payload: bytes = field(compare=False, default=b"")


class VirtualNetwork:
    """One recursion at several sites."""

    def __init__(self, node: Fixpoint, sites: tuple[str, ...], options: RecursionOptions) -> None:
        self._make: Callable[[str], Any] = lambda site: recursive_operator(
            node, site=site, sites=sites, epoch=1, options=options
        )
        self.sites = sites
        self.operators = {site: self._make(site) for site in sites}
        self._empty = deep_size(self._make(sites[0]))
        self._cluster = {site: number // CLUSTER for number, site in enumerate(sites)}
        self._events: list[_Event] = []
        self._number = 0
        self._busy = dict.fromkeys(sites, 0.0)
        self._between_free = 0.0
        self._last_arrival: dict[tuple[str, str], float] = {}
        self._moved = 0
        self._messages = 0
        self.now = 0.0

    def apply(self, site: str, leaf: int, delta: Delta) -> None:
        """Change a leaf at a site, now."""
        self.operators[site].apply(leaf, delta)
        self._push(_Event(self.now, 0, site))

    def _push(self, event: _Event) -> None:
        self._number += 1
        event.number = self._number
        heapq.heappush(self._events, event)

    def run(self, limit: float) -> bool:
        """Work until nothing is left; return False when that takes too long.

        Args:
            limit: Seconds of real processor time.
        """
        end = time.process_time() + limit
        while self._events:
            if time.process_time() > end:
                return False
            self._work(self._events[0].site)
        self.now = max(self._busy.values())
        return True

    def _work(self, site: str) -> None:
        """Let a site take in what has arrived, settle, and send."""
        first = heapq.heappop(self._events)
        start = max(first.at, self._busy[site])
        arrived = [first]
        rest: list[_Event] = []
        while self._events and self._events[0].at <= start:
            event = heapq.heappop(self._events)
            (arrived if event.site == site else rest).append(event)
        for event in rest:
            heapq.heappush(self._events, event)
        operator = self.operators[site]
        began = time.process_time()
        for event in arrived:
            if event.payload:
                batch = decode_packed(event.payload, DeltaBatch)
                operator.receive(event.sender, batch.port, batch.annotated, batch.kills)
        operator.settle()
        outgoing = [(message.site, _packed(message)) for message in operator.drain()]
        finished = start + time.process_time() - began
        self._busy[site] = finished
        for receiver, payload in outgoing:
            self._send(site, receiver, payload, finished)
        if not operator.is_settled:
            self._push(_Event(finished, 0, site))

    def _send(self, site: str, receiver: str, payload: bytes, at: float) -> None:
        self._moved += len(payload)
        self._messages += 1
        if self._cluster[site] == self._cluster[receiver]:
            arrival = at + INSIDE.latency + len(payload) / INSIDE.bandwidth
        else:
            sent = max(at, self._between_free) + len(payload) / BETWEEN.bandwidth
            self._between_free = sent
            arrival = sent + BETWEEN.latency
        arrival = max(arrival, self._last_arrival.get((site, receiver), 0.0))
        self._last_arrival[site, receiver] = arrival
        self._push(_Event(arrival, 0, receiver, site, payload))

    def reset_costs(self) -> None:
        """Count messages and time from now on."""
        self._moved = self._messages = 0
        self._busy = dict.fromkeys(self.sites, 0.0)
        self._last_arrival = {}
        self.now = self._between_free = 0.0

    def costs(self, *, finished: bool) -> Costs:
        """Return the metrics so far."""
        count = len(self.sites)
        state = sum(deep_size(operator) - self._empty for operator in self.operators.values())
        return Costs(
            seconds=max(self._busy.values()),
            bytes_per_site=self._moved / count,
            state_per_site=max(state, 0) / count,
            provenance_per_row=self._provenance(),
            finished=finished,
            messages=self._messages,
        )

    def _provenance(self) -> float:
        """Return the mean encoded size of what view rows carry; 0 without annotations."""
        total = rows = 0
        for operator in self.operators.values():
            view, encoding = getattr(operator, "_view", None), getattr(operator, "encoding", None)
            if encoding is None or view is None:
                continue
            for entry in view.entries.values():
                parts = [entry.sent, entry.buffered, *entry.received]
                total += sum(len(encoding.encode(part)) for part in parts if part is not None)
                rows += 1
        return total / rows if rows else 0.0


def _packed(message: RecursiveMessage) -> bytes:
    return encode_packed(
        DeltaBatch(
            version=1,
            epoch=1,
            seq=0,
            port=message.port,
            annotated=message.annotated,
            kills=message.kills,
        )
    )


def deep_size(root: Any) -> int:
    """Return the bytes of an object and all data it refers to, each counted once.

    Code, classes and modules are not data, nor are the variables of decision diagrams, which a
    process has once. Diagrams live outside Python: 10 bytes a node.
    """
    seen = {id(part) for part in bdd._context()}  # noqa: SLF001  (nobody else has to know them)
    todo = [root]
    total = 0
    while todo:
        thing = todo.pop()
        if id(thing) in seen or isinstance(thing, type | type(sys) | _CODE):
            continue
        seen.add(id(thing))
        total += sys.getsizeof(thing, 0)
        nodes = getattr(thing, "node_count", None)
        if nodes is not None and not isinstance(thing, type):
            total += 10 * int(nodes())
        elif isinstance(thing, dict):
            todo.extend(thing)
            todo.extend(thing.values())
        elif isinstance(thing, list | tuple | set | frozenset):
            todo.extend(thing)
        elif not isinstance(thing, str | bytes | int | float):
            todo.extend(_attributes(thing))
    return total


_CODE = type(lambda: None) | type(len) | type(heapq.heappush)


def _attributes(thing: Any) -> list[Any]:
    found = list(getattr(thing, "__dict__", {}).values())
    for kind in type(thing).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            value = getattr(thing, name, None)
            if value is not None:
                found.append(value)
    return found
