"""The BACnet connector: properties of objects to readings, a row of all at each change."""

import asyncio
from collections.abc import Callable

from bacpypes3.apdu import ErrorRejectAbortNack

from gateway.connectors.bacnet.bacnet_options import BacnetBrowse, BacnetEndpoint, BacnetSource
from gateway.connectors.bacnet.device import (
    PRESENT_VALUE,
    Device,
    Property,
    RefusedError,
    parse_property,
    plain_value,
)
from gateway.connectors.bacnet.object_list import offer_objects
from gateway.connectors.browsing import BrowseContext
from gateway.connectors.connector import ConnectorContext
from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.lost_cancellation import raise_if_cancelled
from gateway.connectors.polling import Poll, poll_until_lost
from gateway.connectors.reading import Reading
from gateway.connectors.record_columns import record_columns


class BacnetConnector:
    """Serves one device."""

    kind = "bacnet"
    endpoint_options = BacnetEndpoint
    source_options = BacnetSource
    browse_options = BacnetBrowse

    async def run(self, context: ConnectorContext) -> None:
        """Read the device until it does not answer.

        Raises:
            ConnectionError: It does not.
        """
        device = Device(context.endpoint_as(BacnetEndpoint), is_guest=context.is_trial)
        followed = []
        for source in context.sources:
            try:
                followed.append(FollowedObjects(source, device))
            except ValueError as error:
                source.problem(str(error))
        polls = [Poll(objects.options.interval, objects.read) for objects in followed]
        try:
            await poll_until_lost(context, polls, _follow(context, followed))
        finally:
            device.close()

    async def browse(self, context: BrowseContext) -> None:
        """Offer the objects of the device.

        Raises:
            ConnectionError: It does not answer.
            RefusedError: It does not tell its objects.
        """
        device = Device(context.endpoint_as(BacnetEndpoint), is_guest=True)
        try:
            await offer_objects(device, context)
        finally:
            device.close()


class PolledOnly:
    """Collects the objects whose changes are not notified into one note.

    Args:
        note: Takes the note; it replaces the one before.
    """

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._objects: dict[str, list[str]] = {}

    def add(self, name: str, reason: str) -> None:
        """Add an object, and why."""
        self._objects.setdefault(reason, []).append(name)
        parts = [f"{', '.join(names)} ({reason})" for reason, names in self._objects.items()]
        self._note(f"polled only: {'; '.join(parts)}")


async def _follow(context: ConnectorContext, followed: "list[FollowedObjects]") -> None:
    polled_only = PolledOnly(context.note)
    async with asyncio.TaskGroup() as group:
        for objects in followed:
            group.create_task(objects.emit_changes(context))
            for wanted in objects.observable:
                group.create_task(objects.follow(wanted, polled_only))


class FollowedObjects:
    """A source, its properties and their newest values.

    Raises:
        ValueError: The FROM of a column is no property; names the column.
    """

    def __init__(self, source: DeclaredSource, device: Device) -> None:
        self.options = source.options_as(BacnetSource)
        self._source = source
        self._device = device
        self._wanted = _properties_of(source)
        self._values: dict[str, object] = {}
        self._changed = asyncio.Event()
        self._is_read = asyncio.Event()

    @property
    def observable(self) -> list[Property]:
        """The properties whose changes are subscribed to."""
        if self.options.cov == "no":
            return []
        return [wanted for wanted in self._wanted if str(wanted.name) == PRESENT_VALUE]

    async def read(self) -> list[Reading]:
        """Read all properties; return a row of them."""
        for wanted in self._wanted:
            try:
                self._values[wanted.text] = await self._device.read(wanted)
            except RefusedError as error:
                self._values.pop(wanted.text, None)
                self._source.problem(f"{wanted.text}: {error}")
        self._is_read.set()
        return self._source.read_record(self._values) if self._values else []

    async def follow(self, wanted: Property, polled_only: PolledOnly) -> None:
        """Keep the newest value of a property whose changes the device notifies."""
        try:
            async with self._device.changes(wanted) as changes:
                while True:
                    name, value = await changes.get_value()  # type: ignore[attr-defined]
                    raise_if_cancelled()
                    if str(name) == PRESENT_VALUE:
                        self._values[wanted.text] = plain_value(value)
                        self._changed.set()
        except ErrorRejectAbortNack as error:
            # It is read at intervals all the same, which tells whether the device is there.
            polled_only.add(f"{wanted.text} of {self._source.name}", f"{error!s:.100}")

    async def emit_changes(self, context: ConnectorContext) -> None:
        """Emit a row of the newest values at each change, when the former one is kept."""
        # Notifications begin before all is read: rows of them would have holes.
        await self._is_read.wait()
        while True:
            await self._changed.wait()
            self._changed.clear()
            readings = self._source.read_record(self._values)
            if readings:
                context.emit(readings)
                await context.kept()


def _properties_of(source: DeclaredSource) -> list[Property]:
    found: dict[str, Property] = {}
    for name, text, _form in record_columns(source.definition):
        try:
            found[text] = parse_property(text)
        except ValueError as error:
            raise ValueError(f"column {name}: {error}") from None
    return list(found.values())
