"""Checks of a connector after a restart of its gateway."""

from gateway.connectors.testing.observed_run import Trial
from gateway.connectors.testing.peer import AcknowledgedPeer, is_lasting
from gateway.connectors.testing.verdict import demand


async def goes_on_after_a_restart(trial: Trial) -> None:
    """A fresh connector, which is told what was remembered, goes on where the former one ended.

    Of a peer that keeps what was sent meanwhile nothing is lost, and nothing comes twice that had
    been kept, and acknowledged where the protocol does that.
    """
    peer = trial.peer
    await trial.begin()
    await trial.reads(71)
    if not is_lasting(peer):
        await trial.end()
        await trial.begin()
        await trial.reads(72)
        return
    await _once(trial, 73)
    if isinstance(peer, AcknowledgedPeer):
        await trial.until(lambda: 73 in peer.acknowledged(), "what is kept is acknowledged")
    await trial.end()
    await peer.send(74)
    await trial.begin()
    await trial.until(lambda: trial.has(74), "what was sent during the restart is emitted")
    await _once(trial, 75)
    for number in (73, 74, 75):
        times = trial.times(number)
        demand(times == 1, f"a reading was emitted {times} times around a restart")


async def _once(trial: Trial, number: int) -> None:
    await trial.peer.send(number)
    await trial.until(lambda: trial.has(number), f"reading {number} is emitted")
