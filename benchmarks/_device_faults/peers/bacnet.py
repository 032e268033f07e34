"""A BACnet device (bacpypes3): ten analog values that show another number when they are read."""

import asyncio
from typing import Any

from bacpypes3.app import Application
from bacpypes3.local.analog import AnalogValueObject
from bacpypes3.local.device import DeviceObject
from bacpypes3.local.networkport import NetworkPortObject
from bacpypes3.primitivedata import Real

from benchmarks._device_faults.peers.peer import LANES, Served, peer_arguments

PRESENT_VALUE = 85


class Counting(AnalogValueObject):
    """An analog value that counts on with every reading."""

    _served: Served
    _lane: int

    def serve(self, served: Served, lane: int) -> None:
        """Say where the numbers come from."""
        # Attributes without an underscore are properties of BACnet.
        self._served, self._lane = served, lane

    async def read_property(self, attr: int | str, index: int | None = None) -> Any:
        """Return a property; the present value is the next number."""
        if attr == PRESENT_VALUE or str(attr) == "present-value":
            return Real(float(self._served.one(self._lane)))
        return await super().read_property(attr, index)


async def serve() -> None:
    """Serve until killed."""
    arguments = peer_arguments()
    served = Served(arguments)
    device = DeviceObject(
        objectIdentifier=("device", 1_001), objectName="counter", vendorIdentifier=999
    )
    network = NetworkPortObject(
        f"127.0.0.1/24:{arguments.port}", objectIdentifier=("network-port", 1), objectName="port"
    )
    objects: list[Any] = [device, network]
    for lane in range(LANES):
        counting = Counting(
            objectIdentifier=("analog-value", lane), objectName=f"n{lane}", presentValue=0.0
        )
        counting.serve(served, lane)
        objects.append(counting)
    application = Application.from_object_list(objects)
    try:
        await asyncio.Event().wait()
    finally:
        application.close()


if __name__ == "__main__":
    asyncio.run(serve())
