"""Owner of our id: ourselves, an earlier incarnation, or another process that stole it.

A broker lets one client at a time use an id, so two processes with one id throw each other out in
turn. Each then finds the other's state under its own id and both come to the same judgement: the
session with the higher epoch, of equal ones the one started later, stays.
"""

import enum
from dataclasses import dataclass

from streamsql.errors import DeploymentError
from streamsql.wire.site_messages import SiteState


@dataclass(frozen=True, slots=True)
class Session:
    """One life of a site.

    Attributes:
        epoch: Grows with every start on the same data directory.
        started: Microseconds since 1970.
        instance: Random.
    """

    epoch: int
    started: int
    instance: str


class Verdict(enum.StrEnum):
    """Meaning of a state found under our id."""

    OURS = "ours"
    OUTDATED = "outdated"
    """Ours must be published again: a will or an earlier life's state stands in its place."""
    PREDECESSOR = "predecessor"
    """An ended session knew a higher epoch: our data directory is new. Start again above it."""
    STOLEN = "stolen"
    """A newer session runs under our id: stop."""


def judge(own: Session, state: SiteState, *, first: bool) -> Verdict:
    """Return what a state under our id means.

    Args:
        own: This process.
        state: What was received.
        first: It was retained on the broker when we first connected, so whoever wrote it has lost
            the connection to us.
    """
    if state.instance == own.instance:
        return Verdict.OURS if state.online else Verdict.OUTDATED
    ended = first or not state.instance or (not state.online and state.reason == "stopped")
    if ended:
        return Verdict.PREDECESSOR if state.epoch >= own.epoch else Verdict.OUTDATED
    theirs = (state.epoch, state.started, state.instance)
    if theirs > (own.epoch, own.started, own.instance):
        return Verdict.STOLEN
    return Verdict.OUTDATED


class StolenIdError(DeploymentError):
    """Another process runs under our id."""

    code = "stolen_id"


class OutdatedEpochError(DeploymentError):
    """An ended session of this id had a higher epoch, the highest known: start again above it."""

    code = "outdated_epoch"

    def __init__(self, epoch: int) -> None:
        super().__init__(f"an earlier session of this site had epoch {epoch}")
        self.epoch = epoch


class BeginAgainError(DeploymentError):
    """This life ends on request: the same process starts again with its settings."""

    code = "begin_again"

    def __init__(self, message: str = "a restart was requested") -> None:
        super().__init__(message)


class RenamedError(BeginAgainError):
    """The coordinator has given this gateway another name: start again with its settings."""

    code = "renamed"

    def __init__(self, name: str) -> None:
        super().__init__(f"this gateway is called {name} from now on")
        self.name = name
