"""Connectors that can list what their device offers, and what such a connector is given.

A class that can do it has a coroutine `browse`, and a struct `browse_options` of what it may be
told, declared with `forbid_unknown_fields=True`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, runtime_checkable

import msgspec

from gateway.connectors.connector import nobody_listens
from gateway.connectors.options import convert_options
from streamsql.mapping.offers import OfferedRecord

Options = TypeVar("Options", bound=msgspec.Struct)


class NoOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing to say."""


@dataclass(slots=True)
class BrowseContext:
    """Context of a connector that lists what its devices offer.

    Attributes:
        gateway: Id of the gateway.
        endpoint_name: As the gateway's settings name it.
        endpoint: Its settings; read them with `endpoint_as`.
        offer: Report a record as soon as it is known; what is too much is left out.
        options: What somebody has written; read them with `options_as`.
        note: Say in plain words what was left out, and why.
    """

    gateway: str
    endpoint_name: str
    endpoint: Mapping[str, object]
    offer: Callable[[OfferedRecord], None]
    options: Mapping[str, str] = field(default_factory=dict)
    note: Callable[[str], None] = nobody_listens

    def endpoint_as(self, kind: type[Options]) -> Options:
        """Return the endpoint's settings as the connector's struct.

        Raises:
            DeploymentError: One is missing, unknown or wrong; names it, never its value.
        """
        return convert_options(dict(self.endpoint), kind, f"endpoint {self.endpoint_name}")

    def options_as(self, kind: type[Options]) -> Options:
        """Return what was written as the connector's struct.

        Raises:
            DeploymentError: An option is missing, unknown or wrong; names it.
        """
        return convert_options(self.options, kind, "browsing", texts=True)


@runtime_checkable
class Browser(Protocol):
    """A connector that can list what its device offers.

    Attributes:
        browse_options: What it may be told, such as where to begin.
    """

    @property
    def browse_options(self) -> type[msgspec.Struct]:
        """See above; a class says `browse_options = …`."""

    async def browse(self, context: BrowseContext) -> None:
        """Offer the records of the device; end when all are offered.

        It is cancelled after 30 s at most, and when enough is known: 100 records, 2,000 values. It
        changes nothing at the device, and leaves nothing there.

        Raises:
            ConnectionError: The device does not answer.
        """
