"""What every connector has to do."""

import asyncio
from collections.abc import Awaitable, Callable

from gateway.connectors.registry import MakeConnector
from gateway.connectors.testing.peer import (
    AcknowledgedPeer,
    FaultyPeer,
    FloodingPeer,
    Peer,
    calls_us,
)
from gateway.connectors.testing.trial import Trial

Check = Callable[[Trial], Awaitable[None]]

FLOOD = 30_000
MOST_UNKEPT = 15_000
"""Readings that a connector may have emitted while nothing is kept."""


class NotApplicableError(Exception):
    """The peer, or its protocol, cannot do what a check needs."""


async def run_check(check: Check, make: MakeConnector, peer: Peer) -> bool:
    """Run a check with a fresh connector; return whether it applies to the peer.

    Raises:
        AssertionError: The connector does not conform; says how.
    """
    await peer.start()
    trial = Trial(make, peer)
    try:
        await check(trial)
    except NotApplicableError:
        return False
    finally:
        trial.keeping.set()
        await trial.end()
        await peer.stop()
    return True


def name_of(check: Check) -> str:
    """Return the name of a check."""
    return getattr(check, "__name__", repr(check))


async def refuses_unknown_options(trial: Trial) -> None:
    """An option that is misspelt is a problem, not silently ignored."""
    await trial.begin()
    await trial.reads(1)
    connector = trial.make()
    for options in (connector.endpoint_options, connector.source_options):
        config = options.__struct_config__
        _check(config.forbid_unknown_fields, f"{options.__name__} takes unknown options")


async def reads_and_stops(trial: Trial) -> None:
    """Readings come, and a connector that is cancelled ends within a second."""
    await trial.begin()
    for number in (11, 12, 13):
        await trial.reads(number)
    _check(trial.problem == "", f"nothing is wrong, but it says {trial.problem!r}")
    _check(await trial.end(), "it does not stop within a second of its cancellation")


async def stops_while_its_peer_is_away(trial: Trial) -> None:
    """A connector that cannot connect ends within a second, too."""
    if calls_us(trial.peer):
        raise NotApplicableError
    await trial.peer.stop()
    await trial.begin()
    await trial.until(lambda: len(trial.started) > 0, "it is started")
    _check(await trial.end(), "it does not stop within a second while its peer is away")


async def stops_while_nothing_is_kept(trial: Trial) -> None:
    """A connector that waits for the gateway ends within a second, too."""
    await trial.begin()
    await trial.reads(21)
    trial.keeping.clear()
    await trial.peer.send(22)
    await asyncio.sleep(0.3)
    _check(await trial.end(), "it does not stop within a second while it waits for kept()")


async def reconnects_with_pauses(trial: Trial) -> None:
    """A peer that was away is read again; meanwhile it is asked at growing intervals."""
    if calls_us(trial.peer):
        raise NotApplicableError
    await trial.begin()
    await trial.reads(31)
    await trial.peer.stop()
    await trial.until(lambda: trial.problem != "", "it says that its peer is away")
    before = len(trial.started)
    await asyncio.sleep(5.0)
    tries = len(trial.started) - before
    _check(tries <= 5, f"it was started {tries} times within 5 s")
    await trial.peer.start()
    await trial.reads(32)
    await trial.until(lambda: trial.problem == "", "its problem is over")


async def counts_what_is_bad(trial: Trial) -> None:
    """What cannot be used is counted with a reason, and the next reading comes."""
    peer = trial.peer
    if not isinstance(peer, FaultyPeer):
        raise NotApplicableError
    await trial.begin()
    await trial.reads(41)
    before = len(trial.recorder.faults)
    await peer.send_bad()
    await trial.until(lambda: len(trial.recorder.faults) > before, "the bad payload is counted")
    _check(bool(trial.recorder.faults[-1].strip()), "the bad payload has no reason")
    await trial.reads(42)


async def acknowledges_what_is_kept(trial: Trial) -> None:
    """Nothing is acknowledged before `kept()` has returned."""
    peer = trial.peer
    if not isinstance(peer, AcknowledgedPeer):
        raise NotApplicableError
    await trial.begin()
    await trial.reads(51)
    await trial.until(lambda: 51 in peer.acknowledged(), "what is kept is acknowledged")
    trial.keeping.clear()
    await peer.send(52)
    await trial.until(lambda: trial.has(52), "the next reading is emitted")
    await asyncio.sleep(0.5)
    _check(52 not in peer.acknowledged(), "a reading was acknowledged before it was kept")
    trial.keeping.set()
    await trial.until(lambda: 52 in peer.acknowledged(), "it is acknowledged when it is kept")


async def is_bounded(trial: Trial) -> None:
    """While the gateway keeps nothing, a connector stops reading instead of piling up."""
    peer = trial.peer
    if not isinstance(peer, FloodingPeer):
        raise NotApplicableError
    await trial.begin()
    await trial.reads(61)
    trial.keeping.clear()
    before = len(trial.recorder.readings)
    flood = asyncio.create_task(peer.flood(range(100_000, 100_000 + FLOOD)))
    await asyncio.wait({flood}, timeout=5.0)
    await asyncio.sleep(0.5)
    emitted = len(trial.recorder.readings) - before
    _check(emitted <= MOST_UNKEPT, f"{emitted} readings were emitted while nothing was kept")
    trial.keeping.set()
    await trial.until(lambda: trial.has(100_000 + FLOOD - 1), "the flood comes to its end")
    await flood


def _check(holds: bool, complaint: str) -> None:
    """Refuse a connector.

    Raises:
        AssertionError: It does not hold.
    """
    if not holds:
        raise AssertionError(complaint)


CHECKS: tuple[Check, ...] = (
    refuses_unknown_options,
    reads_and_stops,
    stops_while_its_peer_is_away,
    stops_while_nothing_is_kept,
    reconnects_with_pauses,
    counts_what_is_bad,
    acknowledges_what_is_kept,
    is_bounded,
)
