"""Whether this coordinator is in charge: its own state, and the states of others under its name.

The newest coordinator of a federation has the greatest epoch; an older one that hears of it steps
down permanently.
"""

import logging

from federated_optimizer.coordinator.contract.coordinator_settings import CoordinatorSettings
from host.clocks import Clock
from host.mqtt import Will
from streamsql.errors import DeploymentError, WireError
from streamsql.wire.codec import encode_json
from streamsql.wire.site_messages import SiteRole, SiteState
from streamsql.wire.topics import Topics

log = logging.getLogger(__name__)

MAX_AHEAD = 86_400_000
"""Milliseconds by which the clock of another coordinator may be ahead of ours."""


class Presence:
    """The coordinator as others see it.

    Attributes:
        taken_over: Whether a newer coordinator has been heard of.
        closing: Whether we are about to leave.
    """

    def __init__(self, settings: CoordinatorSettings, clock: Clock, epoch: int) -> None:
        self._settings = settings
        self._clock = clock
        self.epoch = epoch
        self.taken_over = False
        self.closing = False

    def state(self, *, online: bool, reason: str = "") -> SiteState:
        """Return what we say of ourselves."""
        return SiteState(
            online=online,
            epoch=self.epoch,
            ts=self._clock(),
            role=SiteRole.COORDINATOR,
            reason=reason,
        )

    def will(self) -> Will:
        """Return what the broker says of us when we vanish."""
        lost = encode_json(self.state(online=False, reason="lost"))
        return Will(Topics(self._settings.site).host_state(self._settings.host), lost)

    def check_in_charge(self) -> None:
        """Check that we may change something.

        Raises:
            DeploymentError: Another coordinator has taken over.
        """
        if self.taken_over:
            raise DeploymentError(
                "another coordinator took over this federation",
                hint="stop one of the two, or give it another federation name",
            )

    def is_replaced_by(self, state: SiteState) -> bool:
        """Whether a state that was published under our name makes us step down, the first time.

        Raises:
            WireError: Its epoch is of no coordinator: these follow the clock.
        """
        if state.epoch > self._clock() // 1_000 + MAX_AHEAD:
            raise WireError(f"epoch {state.epoch} is more than a day ahead of the clock")
        if state.epoch <= self.epoch or self.taken_over:
            return False
        log.error("another coordinator took over federation %s", self._settings.site)
        self.taken_over = True
        return True

    def is_contradicted_by(self, state: SiteState) -> bool:
        """Whether a state says that we are gone, which we are not.

        It is the will of a former incarnation, or of our own link that broke and is back.
        """
        is_ours = state.epoch <= self.epoch and not self.taken_over
        return is_ours and not state.online and not self.closing
