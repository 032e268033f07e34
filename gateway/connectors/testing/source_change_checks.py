"""Checks of a connector while the set of its sources changes."""

import asyncio

from gateway.connectors.testing.observed_run import Trial
from gateway.connectors.testing.peer import AcknowledgedPeer
from gateway.connectors.testing.verdict import NotApplicableError, demand

CHANGES = 5
BACKLOG = 1_000
"""Readings that wait when the sources change."""
SECONDS = 30.0


async def acknowledges_nothing_that_is_refused(trial: Trial) -> None:
    """Whatever is acknowledged was ingested, also when sources change while readings wait."""
    peer = trial.peer
    if not isinstance(peer, AcknowledgedPeer):
        raise NotApplicableError
    await trial.begin()
    await trial.reads(81)
    for change in range(1, CHANGES + 1):
        before = len(trial.recorder.readings)
        for number in range(BACKLOG):
            await peer.send(change * 100_000 + number)
        # By turns of the loop: a pause would let the connector read all that waits.
        async with asyncio.timeout(SECONDS):
            while len(trial.recorder.readings) < before + change:  # noqa: ASYNC110
                await asyncio.sleep(0)
        trial.change_sources(version=change + 1)
        await trial.reads(81 + change)
    emitted = {value for reading in trial.recorder.readings for value in reading.values.values()}
    lost = peer.acknowledged() - emitted
    demand(not lost, f"{len(lost)} readings were acknowledged and never emitted around a change")
