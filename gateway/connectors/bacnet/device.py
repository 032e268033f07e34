"""One BACnet device: properties of its objects, and notifications of their changes."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from bacpypes3.apdu import AbortPDU, ErrorRejectAbortNack
from bacpypes3.app import Application
from bacpypes3.basetypes import BinaryPV, PropertyIdentifier
from bacpypes3.local.device import DeviceObject
from bacpypes3.local.networkport import NetworkPortObject
from bacpypes3.pdu import Address
from bacpypes3.primitivedata import Boolean, Enumerated, Null, ObjectIdentifier

from gateway.connectors.bacnet.bacnet_options import BacnetEndpoint
from gateway.connectors.lost_cancellation import raise_if_cancelled

UNSUBSCRIBE_SECONDS = 0.4
LIFETIME = 300
"""Seconds of a subscription."""
RENEWALS = 3
"""Tries to renew a subscription before it is over. A device that was restarted knows none."""
WHO_IS_SECONDS = 2.0
MAX_LISTED = 5_000
"""Objects of a device."""
PRESENT_VALUE = "present-value"
_ITSELF = ObjectIdentifier("device,4194303")
"""Whichever instance a device has (ASHRAE 135, clause 15.5)."""
_PROPERTY = re.compile(r"([a-z][a-z-]{1,60}):(\d{1,7})(?: ([a-z][a-z-]{1,60}))?", re.ASCII)
_NO_VENDOR = 999


class Property(NamedTuple):
    """A property of an object.

    Attributes:
        text: Of FROM.
    """

    text: str
    of: ObjectIdentifier
    name: PropertyIdentifier


class RefusedError(Exception):
    """The device answers with an error."""


def parse_property(text: str) -> Property:
    """Return the property that FROM means.

    Raises:
        ValueError: It is none.
    """
    match = _PROPERTY.fullmatch(text)
    if match is not None:
        with contextlib.suppress(ValueError, TypeError, AttributeError):
            of = ObjectIdentifier(f"{match[1]},{match[2]}")
            return Property(text, of, PropertyIdentifier(match[3] or PRESENT_VALUE))
    raise ValueError(
        f"FROM {text!r:.60} is no object, such as 'analog-input:3', or 'analog-input:3 units' "
        "for another property than its present value"
    )


class Device:
    """A device; requests that it does not answer raise ConnectionError.

    Args:
        endpoint: Where it is, and where we are.
        is_guest: Use any free port: two on one port would take answers from each other.
    """

    def __init__(self, endpoint: BacnetEndpoint, *, is_guest: bool = False) -> None:
        local = endpoint.local
        if is_guest:
            local = f"{local.partition(':')[0]}:0"
        self._is_lost = False
        self._name = f"bacnet {endpoint.address}"
        self._address = Address(endpoint.address)
        self._app = Application.from_object_list(
            [
                DeviceObject(
                    objectIdentifier=("device", endpoint.instance),
                    objectName="pando gateway",
                    vendorIdentifier=_NO_VENDOR,
                    apduTimeout=int(endpoint.timeout * 1_000),
                    numberOfApduRetries=1,
                ),
                NetworkPortObject(local, objectIdentifier=("network-port", 1), objectName="port"),
            ]
        )

    def close(self) -> None:
        """Close the sockets."""
        close_application(self._app)

    async def read(self, wanted: Property) -> object:
        """Return a property's value.

        Raises:
            ConnectionError: The device does not answer.
            RefusedError: It answers with an error.
        """
        return plain_value(await self._property(wanted.of, str(wanted.name)))

    @contextlib.asynccontextmanager
    async def changes(self, wanted: Property) -> AsyncIterator[object]:
        """Subscribe to an object's changes; yield what `await get_value()` of bacpypes3 gets.

        Raises:
            ErrorRejectAbortNack: The device takes no subscription.
        """
        subscription = self._app.change_of_value(self._address, wanted.of, None, True, LIFETIME)
        changes = await subscription.__aenter__()
        renewing = asyncio.create_task(_renew(subscription))
        try:
            yield changes
        finally:
            renewing.cancel()
            # Told of an error, bacpypes3 leaves the subscription to the device, until it expires.
            is_lost = (ConnectionError, None, None) if self._is_lost else (None, None, None)
            with contextlib.suppress(TimeoutError, ErrorRejectAbortNack):
                async with asyncio.timeout(UNSUBSCRIBE_SECONDS):
                    await subscription.__aexit__(*is_lost)

    async def instance(self) -> int:
        """Return the instance of the device.

        Raises:
            ConnectionError: It does not tell it.
        """
        with contextlib.suppress(RefusedError):  # not every device knows that this is itself
            return _instance(await self._property(_ITSELF, "object-identifier"))
        told = await self._app.who_is(address=self._address, timeout=WHO_IS_SECONDS)
        raise_if_cancelled()
        for each in told:
            return _instance(each.iAmDeviceIdentifier)
        raise ConnectionError(
            f"{self._name}: the device does not report its instance; add the option device = …"
        )

    async def object_list(self, me: str) -> AsyncIterator[str]:
        """Yield the objects of the device as FROM names them: `analog-input:3`.

        Args:
            me: The device itself, `device:1001`.

        Raises:
            ConnectionError: The device does not answer.
            RefusedError: It does not tell its objects.
        """
        itself = ObjectIdentifier(me.replace(":", ","))
        try:
            listed = await self._property(itself, "object-list")
        except RefusedError:
            # The list is too long for one answer of a small device.
            number = await self._property(itself, "object-list", 0)
            for place in range(1, min(int(number), MAX_LISTED) + 1):
                yield _text_of(await self._property(itself, "object-list", place))
            return
        for each in listed[:MAX_LISTED]:
            yield _text_of(each)

    async def _property(self, of: ObjectIdentifier, name: str, place: int | None = None) -> Any:
        try:
            value = await self._app.read_property(
                self._address, of, PropertyIdentifier(name), array_index=place
            )
        except ErrorRejectAbortNack as error:
            raise self._failure(error) from None
        raise_if_cancelled()
        if isinstance(value, ErrorRejectAbortNack):
            raise self._failure(value)
        return value

    def _failure(self, error: ErrorRejectAbortNack) -> Exception:
        if isinstance(error, AbortPDU) and str(error.apduAbortRejectReason) == "no-response":
            self._is_lost = True
            return ConnectionError(f"{self._name}: it does not answer in time")
        return RefusedError(f"{error!s:.100}")


def close_application(app: Application) -> None:
    """Close an application's sockets, those too that bacpypes3 has not opened yet."""
    for layer in app.link_layers.values():
        for opening in layer.server._transport_tasks:  # noqa: SLF001  (nothing else tells of them)
            opening.add_done_callback(_close_late)
    app.close()


def _close_late(opening: "asyncio.Task[tuple[asyncio.DatagramTransport, Any]]") -> None:
    if not opening.cancelled() and opening.exception() is None:
        transport, _ = opening.result()
        transport.close()


async def _renew(subscription: Any) -> None:
    """Renew a subscription again and again; bacpypes3 gives up when a renewal has failed once."""
    while True:
        await asyncio.sleep(LIFETIME / RENEWALS)
        subscription.refresh_subscription_handle.cancel()
        with contextlib.suppress(ErrorRejectAbortNack):  # the next one may succeed
            await subscription.refresh_subscription()


def _instance(identifier: ObjectIdentifier) -> int:
    return int(identifier[1])


def _text_of(identifier: ObjectIdentifier) -> str:
    return f"{identifier[0]!s}:{int(identifier[1])}"


def plain_value(value: object) -> object:
    """Return a value of BACnet as the mapping of columns takes it."""
    if isinstance(value, Null):
        return None
    if isinstance(value, Boolean | BinaryPV):
        return bool(value)
    if isinstance(value, Enumerated):
        return str(value)
    for kind in (str, int, float):
        if isinstance(value, kind):
            return kind(value)
    return str(value)[:4_000]
