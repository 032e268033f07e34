"""Figures of the coordinator's own process and connection, and of the broker, for Prometheus."""

from collections.abc import Iterator
from typing import Protocol

from federated_optimizer.coordinator.shared_parts import SharedParts
from host.metrics.families import Sample, counter, gauge
from host.metrics.service_figures import connection_problem, service_figures
from streamsql.wire.site_messages import SiteRole

IN_CHARGE = gauge("pando_coordinator_in_charge", "Whether no newer coordinator has taken over.")
MESSAGES = counter("pando_coordinator_messages_total", "Messages received from the broker.")


class Receiver(Protocol):
    """Counts of received messages."""

    messages: int

    @property
    def bad_payloads(self) -> int:
        """Of them those that could not be used."""


class CoordinatorFigures:
    """Figures and health of one coordinator."""

    def __init__(self, shared: SharedParts, receiver: Receiver) -> None:
        self._shared = shared
        self._receiver = receiver

    @property
    def bad_payloads(self) -> int:
        """Messages so far that could not be used."""
        return self._receiver.bad_payloads

    def samples(self) -> Iterator[Sample]:
        """Yield the figures of now."""
        shared, receiver = self._shared, self._receiver
        settings = shared.settings
        yield from service_figures(
            settings.site,
            settings.host,
            SiteRole.COORDINATOR,
            shared.client,
            receiver.bad_payloads,
        )
        yield IN_CHARGE.at(not shared.presence.taken_over)
        yield MESSAGES.at(receiver.messages)
        yield from shared.broker.samples()

    def problem(self) -> str:
        """Return why the coordinator does not do its work, or empty."""
        if self._shared.presence.taken_over:
            return "another coordinator took over this federation"
        return connection_problem(self._shared.client)
