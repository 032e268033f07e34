"""Checks that every connector has to pass."""

import asyncio
import contextlib

from gateway.connectors.registry import MakeConnector
from gateway.connectors.testing.absence import counted_attempts
from gateway.connectors.testing.beside_checks import leaves_a_running_one_alone
from gateway.connectors.testing.loop_watchdog import LoopWatchdog
from gateway.connectors.testing.observed_run import Trial
from gateway.connectors.testing.peer import (
    AcknowledgedPeer,
    AddressedPeer,
    FaultyPeer,
    FloodingPeer,
    HugePeer,
    Peer,
    calls_us,
)
from gateway.connectors.testing.restart_checks import goes_on_after_a_restart
from gateway.connectors.testing.source_change_checks import acknowledges_nothing_that_is_refused
from gateway.connectors.testing.verdict import Check, NotApplicableError, demand

__all__ = ["CHECKS", "Check", "name_of", "run_check"]

FLOOD = 30_000
FLOOD_SECONDS = 90.0
MOST_UNKEPT = 15_000
"""Readings that a connector may have emitted while nothing is kept."""
ABSENCE_SECONDS = 5.0
MOST_STARTS = 5
RETURN_SECONDS = 90.0
"""Until a peer that is back is read: pauses grow as long as the absence before them."""
MOST_ATTEMPTS = 20
"""Connections or datagrams to a peer that is away for `ABSENCE_SECONDS`: a start may ask thrice."""


async def run_check(check: Check, make: MakeConnector, peer: Peer) -> bool:
    """Run a check with a fresh connector; return whether it applies to the peer.

    Raises:
        AssertionError: The connector does not conform; says how.
    """
    watchdog = LoopWatchdog({each.__module__ for each in type(peer).__mro__ if each is not object})
    with watchdog.watching():
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
    demand(not watchdog.complaint, watchdog.complaint)
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
        demand(config.forbid_unknown_fields, f"{options.__name__} takes unknown options")


async def reads_and_stops(trial: Trial) -> None:
    """Readings come, and a connector that is cancelled ends within a second."""
    await trial.begin()
    for number in (11, 12, 13):
        await trial.reads(number)
    demand(trial.problem == "", f"nothing is wrong, but it says {trial.problem!r}")
    demand(await trial.end(), "it does not stop within a second of its cancellation")


async def stops_while_its_peer_is_away(trial: Trial) -> None:
    """A connector that cannot connect ends within a second, too."""
    if calls_us(trial.peer):
        raise NotApplicableError
    await trial.peer.stop()
    await trial.begin()
    await trial.until(lambda: len(trial.started) > 0, "it is started")
    demand(await trial.end(), "it does not stop within a second while its peer is away")


async def stops_while_nothing_is_kept(trial: Trial) -> None:
    """A connector that waits for the gateway ends within a second, too."""
    await trial.begin()
    await trial.reads(21)
    trial.keeping.clear()
    await trial.peer.send(22)
    await asyncio.sleep(0.3)
    demand(await trial.end(), "it does not stop within a second while it waits for kept()")


async def reconnects_with_pauses(trial: Trial) -> None:
    """A peer that was away is read again; meanwhile it is asked at growing intervals."""
    if calls_us(trial.peer):
        raise NotApplicableError
    await trial.begin()
    await trial.reads(31)
    await trial.peer.stop()
    async with contextlib.AsyncExitStack() as absence:
        attempts = None
        if isinstance(trial.peer, AddressedPeer):
            attempts = await absence.enter_async_context(counted_attempts(*trial.peer.address))
        await trial.until(lambda: trial.problem != "", "it says that its peer is away")
        starts, asked = len(trial.started), 0 if attempts is None else attempts.number
        await asyncio.sleep(ABSENCE_SECONDS)
        starts = len(trial.started) - starts
        demand(starts <= MOST_STARTS, f"it was started {starts} times within 5 s")
        if attempts is not None:
            asked = attempts.number - asked
            demand(asked <= MOST_ATTEMPTS, f"its peer was asked {asked} times within 5 s")
    await trial.peer.start()
    await trial.reads(32, RETURN_SECONDS)
    await trial.until(lambda: trial.problem == "", "its problem is over")


async def counts_what_is_bad(trial: Trial) -> None:
    """Bad input is counted with a reason, and the next reading comes."""
    peer = trial.peer
    if not isinstance(peer, FaultyPeer):
        raise NotApplicableError
    await trial.begin()
    await trial.reads(41)
    before = len(trial.recorder.faults)
    await peer.send_bad()
    await trial.until(lambda: len(trial.recorder.faults) > before, "the bad payload is counted")
    demand(bool(trial.recorder.faults[-1].strip()), "the bad payload has no reason")
    await trial.reads(42)


async def refuses_huge_payloads(trial: Trial) -> None:
    """A payload of more than 1 MB is counted with a reason, and the next reading comes."""
    peer = trial.peer
    if not isinstance(peer, HugePeer):
        raise NotApplicableError
    await trial.begin()
    await trial.reads(45)
    before = len(trial.recorder.faults)
    await peer.send_huge(46)
    await trial.until(lambda: len(trial.recorder.faults) > before, "the huge payload is counted")
    demand(bool(trial.recorder.faults[-1].strip()), "the huge payload has no reason")
    await trial.reads(47)
    demand(not trial.has(46), "a payload of more than 1 MB became a reading")


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
    demand(52 not in peer.acknowledged(), "a reading was acknowledged before it was kept")
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
    demand(emitted <= MOST_UNKEPT, f"{emitted} readings were emitted while nothing was kept")
    trial.keeping.set()
    last = 100_000 + FLOOD - 1
    await trial.until(lambda: trial.has(last), "the flood comes to its end", FLOOD_SECONDS)
    await flood


CHECKS: tuple[Check, ...] = (
    refuses_unknown_options,
    reads_and_stops,
    stops_while_its_peer_is_away,
    stops_while_nothing_is_kept,
    reconnects_with_pauses,
    counts_what_is_bad,
    refuses_huge_payloads,
    acknowledges_what_is_kept,
    acknowledges_nothing_that_is_refused,
    is_bounded,
    goes_on_after_a_restart,
    leaves_a_running_one_alone,
)
