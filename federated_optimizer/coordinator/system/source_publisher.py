"""Declared sources on the broker: what the catalog says of them, for gateways to serve."""

import logging

from federated_optimizer.coordinator.shared_parts import SharedParts
from host.mqtt import MessagingError
from streamsql.catalog.definitions import SourceDefinition
from streamsql.errors import BindingError, WireError
from streamsql.wire.source_orders import MAX_SOURCES, encode_order
from streamsql.wire.topics import text_of_level

log = logging.getLogger(__name__)


class SourcePublisher:
    """Keeps the retained definitions equal to those of the catalog.

    A change that finds the message queue full is owed, and follows with `publish_owed`.
    """

    def __init__(self, shared: SharedParts) -> None:
        self._shared = shared
        self._owed: dict[str, None] = {}

    def check(self, definition: SourceDefinition) -> None:
        """Refuse a declared source that gateways could not take.

        Raises:
            BindingError: It is too large to be sent, or there are too many.
        """
        if definition.mapping is None:
            return
        if self._declared(definition.name) is None and len(self._all()) >= MAX_SOURCES:
            raise BindingError(
                f"{MAX_SOURCES} sources are declared, which is the max",
                hint="drop one that nobody reads",
                code="limit_exceeded",
            )
        try:
            encode_order(definition)
        except WireError as error:
            raise BindingError(error.message, hint=error.hint, code="limit_exceeded") from error

    def changed(self, name: str) -> None:
        """Tell gateways what the catalog now says of a name."""
        self._owed[name.lower()] = None
        try:
            self.publish_owed()
        except MessagingError as error:
            log.warning("the definition of %s follows later: %s", name, error.message)

    def connected(self) -> None:
        """Owe the broker every definition: it may have lost them."""
        self._owed.update(dict.fromkeys(source.name.lower() for source in self._all()))

    def publish_owed(self) -> None:
        """Publish what is owed.

        Raises:
            MessagingError: The message queue is full; the rest stays owed.
        """
        while self._owed:
            name = next(iter(self._owed))
            declared = self._declared(name)
            if declared is None:
                self._shared.deployment.withdraw_source(name)
            else:
                self._shared.deployment.source(declared)
            del self._owed[name]

    def found(self, level: str) -> None:
        """Clear a retained definition if it is of no declared source of the catalog."""
        name = text_of_level(level)
        if self._declared(name) is None:
            self.changed(name)

    def _declared(self, name: str) -> SourceDefinition | None:
        found = self._shared.catalog.find(name)
        if isinstance(found, SourceDefinition) and found.mapping is not None:
            return found
        return None

    def _all(self) -> list[SourceDefinition]:
        return [source for source in self._shared.catalog.sources if source.mapping is not None]
