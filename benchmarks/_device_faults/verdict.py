"""Verdict on a device's numbers: from its log, the kills, and the rows that arrived."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks._device_faults.kinds import TIMEOUT, Kind, Promise
from benchmarks._device_faults.number_log import Entry, Event

EXAMPLES = 5


@dataclass(frozen=True)
class Kill:
    """A process that was killed, on CLOCK_MONOTONIC from the signal until it was started again.

    Attributes:
        victim: "gateway", "broker", or the name of a connector for its device.
    """

    victim: str
    began: float
    ended: float


@dataclass(frozen=True)
class Verdict:
    """The numbers of one device.

    Attributes:
        sent: Different numbers that the device has handed out, or stored.
        acknowledged: Of those: acknowledged, as the protocol's promise has it.
        arrived: Different numbers that are rows at the base site.
        lost: Acknowledged and not arrived.
        lost_before: Sent, not acknowledged, and not arrived.
        doubled: Rows beyond the first of a number.
        unexplained: Of those: more rows than the device has handed the number out.
        forgotten: Of those: handed out again after the gateway had acknowledged the number, because
            the device had forgotten that.
        allowed: Other rows that may be doubled: what was under way at the kills of gateway and
            device.
        invented: Arrived and never sent.
        kills: How often each process was killed that this device can feel.
        seconds: From the first to the last event in its log.
        examples: Some of the lost.
    """

    sent: int
    acknowledged: int
    arrived: int
    lost: int
    lost_before: int
    doubled: int
    unexplained: int
    forgotten: int
    allowed: int
    invented: int
    kills: Mapping[str, int]
    seconds: float
    examples: Sequence[int]

    @property
    def problems(self) -> list[str]:
        """Faults found, in words; empty: none."""
        found = []
        if self.lost:
            numbers = ", ".join(map(str, self.examples))
            found.append(f"{self.lost} lost after acknowledgement, such as {numbers}")
        ours = self.doubled - self.forgotten
        if ours > self.allowed:
            found.append(f"{ours} doubled before acknowledgement, where {self.allowed} may be")
        if self.unexplained:
            found.append(f"{self.unexplained} doubled that the device handed out once")
        if self.invented:
            found.append(f"{self.invented} that were never sent")
        return found


def judge(
    kind: Kind, entries: Sequence[Entry], rows: Mapping[int, int], kills: Sequence[Kill]
) -> Verdict:
    """Return the verdict on a device.

    Args:
        kind: Of the device.
        entries: Its log.
        rows: How many rows there are of each number.
        kills: Of all processes.
    """
    felt = [kill for kill in kills if kill.victim in {"gateway", "broker", kind.name}]
    acknowledged = acknowledged_numbers(kind, entries, felt)
    offers = Counter(n for e in entries if e.event == Event.OFFERED for n in e.numbers)
    stored = {n for e in entries if e.event == Event.ACKNOWLEDGED for n in e.numbers}
    published = {n for e in entries if e.event == Event.PUBLISHED for n in e.numbers}
    sent = offers.keys() | stored | published
    lost = sorted(acknowledged - rows.keys())
    often = Counter(dict.fromkeys(sent, 1)) | offers  # of what is stored no reading is logged
    times = Counter(kill.victim for kill in felt)
    allowed = times["gateway"] * kind.window + times[kind.name] * kind.device_window
    return Verdict(
        sent=len(sent),
        acknowledged=len(acknowledged),
        arrived=len(rows),
        lost=len(lost),
        lost_before=len(sent - rows.keys() - acknowledged),
        doubled=sum(count - 1 for count in rows.values()),
        unexplained=(
            sum(max(count - often[n], 0) for n, count in rows.items() if n in sent)
            if kind.logs_offers
            else 0
        ),
        forgotten=_forgotten(entries, rows),
        allowed=allowed,
        invented=len(rows.keys() - sent),
        kills=dict(times),
        seconds=round(entries[-1].at - entries[0].at, 1) if entries else 0.0,
        examples=lost[:EXAMPLES],
    )


def _forgotten(entries: Iterable[Entry], rows: Mapping[int, int]) -> int:
    """Return how many rows came twice because of numbers handed out after acknowledgement."""
    acknowledged: set[int] = set()
    again: Counter[int] = Counter()
    for entry in entries:
        if entry.event == Event.ACKNOWLEDGED:
            acknowledged.update(entry.numbers)
        elif entry.event == Event.OFFERED:
            again.update(n for n in entry.numbers if n in acknowledged)
    return sum(min(times, rows.get(n, 1) - 1) for n, times in again.items())


def acknowledged_numbers(kind: Kind, entries: Iterable[Entry], kills: Sequence[Kill]) -> set[int]:
    """Return the numbers that must not be lost."""
    match kind.promise:
        case Promise.ANSWERED | Promise.STORED:
            return {n for e in entries if e.event == Event.ACKNOWLEDGED for n in e.numbers}
        case Promise.STANDING:
            newest = {e.lane: e.last for e in entries if e.event == Event.OFFERED}
            return set(newest.values())
        case Promise.ASKED_AGAIN:
            return _asked_again(entries, kills)


def _asked_again(entries: Iterable[Entry], kills: Sequence[Kill]) -> set[int]:
    """Return numbers after which the same process asked the same lane for the next one.

    A request that comes as late as a repeated one says nothing of the answer before it.
    """
    before: dict[int, Entry] = {}
    found: set[int] = set()
    for entry in entries:
        if entry.event != Event.OFFERED:
            continue
        last = before.get(entry.lane)
        if last is not None and entry.at - last.at < TIMEOUT and not _between(kills, last, entry):
            found.update(last.numbers)
        before[entry.lane] = entry
    return found


def _between(kills: Iterable[Kill], first: Entry, second: Entry) -> bool:
    """Return whether gateway or device were dead between two requests, or were killed then."""
    return any(
        kill.victim != "broker" and kill.began <= second.at and kill.ended >= first.at
        for kill in kills
    )
