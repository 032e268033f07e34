"""Trials of sources, as the console sees them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from streamsql.data.schema import Schema
from streamsql.data.types import Row
from streamsql.mapping.offers import OfferedRecord
from streamsql.proposals.offered import Chosen
from streamsql.proposals.proposal import Proposal
from streamsql.wire.trial_messages import TrialSample


@dataclass(frozen=True, slots=True)
class TrialInfo:
    """A trial as far as it has come.

    Attributes:
        columns: Of the source that is tried; of no source where somebody only listens.
        samples: What has come, the oldest first.
        browses: The device is asked what it offers; each record is a sample, too.
        offers: Its records so far.
        dropped: How many payloads are not among them.
        notes: What the connector has come to.
        problem: Why nothing comes, or empty.
        hint: What to do about it, or empty.
    """

    id: str
    gateway: str
    columns: Schema
    samples: tuple[TrialSample, ...] = ()
    browses: bool = False
    offers: tuple[OfferedRecord, ...] = ()
    dropped: int = 0
    notes: tuple[str, ...] = ()
    problem: str = ""
    hint: str = ""
    done: bool = False


@dataclass(frozen=True, slots=True)
class MappedSample:
    """Rows and problems of one payload of a trial under a statement.

    Attributes:
        problems: What was wrong.
        ignored: The statement's topic or the option `only` leaves it out.
    """

    rows: tuple[Row, ...]
    problems: tuple[str, ...] = ()
    ignored: bool = False


@dataclass(frozen=True, slots=True)
class MappedTrial:
    """Rows and problems of all payloads of a trial under a statement, in their order."""

    columns: Schema
    samples: tuple[MappedSample, ...]


class TrialsApi(Protocol):
    """Tries sources at gateways. Trials are forgotten after a while, the oldest first."""

    def listen(
        self,
        gateway: str,
        endpoint: str,
        options: Mapping[str, str],
        *,
        seconds: float = 10.0,
        payloads: int = 100,
    ) -> TrialInfo:
        """Begin to look at an endpoint, without columns: at what it offers, or else at what comes.

        Args:
            gateway: Where; empty: at the first one online that has the endpoint.
            endpoint: As the gateway's settings name it.
            options: Of the connector: topic, url, …; where it is browsed, where to begin.
            seconds: How long, at most 30.
            payloads: How many, at most 100.

        Raises:
            FederationError: The gateway is not there, has no such endpoint, or an option is wrong.
        """
        ...

    async def try_statement(
        self, gateway: str, text: str, *, seconds: float = 10.0, payloads: int = 100
    ) -> TrialInfo:
        """Begin to try what CREATE SOURCE would create; see `listen`.

        Raises:
            FederationError: The statement is wrong as well.
        """
        ...

    def discover(self, gateway: str, endpoint: str, *, seconds: float = 10.0) -> TrialInfo:
        """Begin to listen to what devices announce on a broker; see `listen`.

        Nodes of Sparkplug that send something are told to publish their births again.
        """
        ...

    def info(self, trial_id: str) -> TrialInfo:
        """Return a trial as far as it has come.

        Raises:
            KeyError: There is none.
        """
        ...

    def stop(self, trial_id: str) -> TrialInfo:
        """End a trial early; what has come is kept for a while.

        Raises:
            KeyError: There is none.
        """
        ...

    async def propose(
        self, trial_id: str, zone: str = "", chosen: Chosen | None = None
    ) -> tuple[Proposal, ...]:
        """Return statements for what has come, was announced, or is offered.

        Args:
            trial_id: Of `listen`, `try_statement` or `discover`.
            zone: IANA name of the zone of times that name none, where they fit it.
            chosen: Of what is offered; None: all.

        Raises:
            KeyError: There is no such trial.
        """
        ...

    async def map(self, trial_id: str, text: str) -> MappedTrial:
        """Return what a statement would make of what has come; nothing is asked of the gateway.

        Raises:
            KeyError: There is no such trial.
            FederationError: The statement is wrong.
        """
        ...
