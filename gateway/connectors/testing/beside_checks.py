"""Checks of a connector while a source is tried next to the one that runs."""

import contextlib
from collections.abc import AsyncIterator

from gateway.connectors.testing.observed_run import OneConnector, Trial
from gateway.connectors.testing.peer import AcknowledgedPeer, AttendedPeer, calls_us
from gateway.connectors.testing.verdict import NotApplicableError, demand
from gateway.connectors.trial import SourceTrials, TrialSite
from host.clocks import wall_clock
from streamsql.wire.source_orders import SourceOrder
from streamsql.wire.trial_messages import SourceTrial, TrialReport

_ID = "beside"


async def leaves_a_running_one_alone(trial: Trial) -> None:
    """A trial reads what the running connector reads, takes nothing from it, and leaves no trace.

    A connector that is the server cannot listen at its address twice.
    """
    peer = trial.peer
    if calls_us(peer):
        raise NotApplicableError
    await trial.begin()
    await trial.reads(101)
    started = len(trial.started)
    clients = peer.clients() if isinstance(peer, AttendedPeer) else 0
    async with _trying(trial) as beside:
        await beside.reads(102)
        await trial.until(lambda: trial.has(102), "the running one reads beside a trial")
        trial.keeping.clear()
        await peer.send(103)
        await trial.until(lambda: trial.has(103), "the running one reads beside a trial")
        await trial.until(lambda: beside.has(103), "the trial reads beside the running one")
        if isinstance(peer, AcknowledgedPeer):
            # The trial would have acknowledged 103 before it reads these, on the same connection.
            await beside.reads(104)
            await beside.reads(105)
            demand(103 not in peer.acknowledged(), "a trial acknowledged what nobody has kept")
        trial.keeping.set()
    await trial.reads(106)
    demand(trial.problem == "", f"a trial disturbs the running one: {trial.problem}")
    demand(len(trial.started) == started, "a trial ends the connection of the running one")
    if isinstance(peer, AttendedPeer):
        await trial.until(lambda: peer.clients() <= clients, "nothing is left of a trial")


class _Beside:
    """A trial of the peer's sources, as a gateway runs it."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._reports: list[TrialReport] = []
        site = TrialSite(
            "trial", {"trial": trial.settings}, OneConnector(trial.make, []), wall_clock
        )
        self._trials = SourceTrials(site, self._reports.append)
        orders = tuple(SourceOrder(1, definition) for definition in trial.peer.sources)
        self._trials.start(_ID, SourceTrial(orders, 30.0))

    def has(self, number: int) -> bool:
        """Whether a row with that number was reported."""
        return any(
            number in row
            for report in self._reports
            for sample in report.samples
            for row in sample.rows
        )

    async def reads(self, number: int) -> None:
        """Let the peer give a reading until it is reported.

        Raises:
            AssertionError: It is not in time, or the trial ends before.
        """
        while not self.has(number):
            last = self._reports[-1] if self._reports else None
            if last is not None and last.done:
                raise AssertionError(
                    f"a trial beside a running one ends: {last.problem or 'early'}"
                )
            await self._trial.peer.send(number)
            with contextlib.suppress(AssertionError):
                await self._trial.until(lambda: self.has(number), "the trial reads", 1.0)

    async def end(self) -> None:
        """End it."""
        await self._trials.close()


@contextlib.asynccontextmanager
async def _trying(trial: Trial) -> AsyncIterator[_Beside]:
    beside = _Beside(trial)
    try:
        yield beside
    finally:
        await beside.end()
