"""BACnet devices on loopback: bacpypes3's application with local objects."""

import contextlib
from collections.abc import Iterator

from bacpypes3.app import Application
from bacpypes3.local.analog import AnalogInputObject, AnalogValueObject
from bacpypes3.local.binary import BinaryValueObject
from bacpypes3.local.device import DeviceObject
from bacpypes3.local.networkport import NetworkPortObject

from broker.free_ports import free_port
from gateway.connectors.bacnet.device import close_application


class Thermostat:
    """A device with a measured value, a set point and a switch."""

    def __init__(self) -> None:
        self.app: Application | None = None
        self.celsius = AnalogInputObject(
            objectIdentifier=("analog-input", 3),
            objectName="room temperature",
            presentValue=21.5,
            covIncrement=0.1,
            units="degreesCelsius",
        )
        self.target = AnalogValueObject(
            objectIdentifier=("analog-value", 1),
            objectName="set point",
            presentValue=22.0,
            covIncrement=0.1,
        )
        self.heating = BinaryValueObject(
            objectIdentifier=("binary-value", 7), objectName="heating", presentValue="active"
        )


@contextlib.contextmanager
def bacnet(thermostat: Thermostat, port: int = 0) -> Iterator[int]:
    """Serve a thermostat; yields the port."""
    port = port or free_port()
    device = DeviceObject(
        objectIdentifier=("device", 1_001), objectName="thermostat", vendorIdentifier=999
    )
    network = NetworkPortObject(
        f"127.0.0.1/24:{port}", objectIdentifier=("network-port", 1), objectName="port"
    )
    objects = [device, network, thermostat.celsius, thermostat.target, thermostat.heating]
    app = Application.from_object_list(objects)
    thermostat.app = app
    try:
        yield port
    finally:
        close_application(app)


def local(port: int) -> dict[str, object]:
    """Return an endpoint's settings for a device on loopback."""
    own = f"127.0.0.1/24:{free_port()}"
    return {"address": f"127.0.0.1:{port}", "local": own, "timeout": 0.5}
