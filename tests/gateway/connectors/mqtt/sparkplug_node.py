"""A simulated Sparkplug node with one device, whose data names metrics by their aliases only."""

from host.mqtt import Message, open_client
from tests.streamsql.mapping.sparkplug.written import (
    DOUBLE,
    INT32,
    NOON,
    PAYLOAD,
    Metric,
    alias,
    bd_seq,
    written,
)

COMMAND = "Node Control/Rebirth"


class SparkplugNode:
    """The node `plant/line1` and its device `press`, as Sparkplug 3.0 has them.

    Attributes:
        session: Number of its birth and death.
        commands: How often it was told to be born again.
        answers: Whether it follows such commands.
        temp: Of its device, alias 10.
        level: Of its device, alias 11.
        speed: Of its own, alias 1.
    """

    def __init__(self, url: str, *, session: int = 0, name: str = "line1") -> None:
        self.session, self.name = session, name
        self.commands, self.answers = 0, True
        self.temp, self.level, self.speed = 21.5, -2, 1480
        self.has_device = True
        self.milliseconds = NOON
        self._seq = 0
        self._client = open_client(url, f"{name}-{session}")

    async def start(self) -> None:
        """Connect, and listen to commands."""
        self._client.on_messages(self._commanded)
        await self._client.connect()
        await self._client.subscribe(f"spBv1.0/plant/NCMD/{self.name}")

    async def close(self) -> None:
        """Disconnect; deaths are published by hand."""
        await self._client.close()

    def be_born(self) -> None:
        """Publish all births."""
        self._seq = 255
        rebirth = {"name": COMMAND, "datatype": 11, "boolean_value": False}
        speed = {"name": "Motor/Speed", "alias": 1, "datatype": INT32, "int_value": self.speed}
        self._publish("NBIRTH", "", bd_seq(self.session), rebirth, speed)
        if self.has_device:
            self.bear_device()

    def bear_device(self) -> None:
        """Publish the birth of the device."""
        self.has_device = True
        temp = {"name": "Temp", "alias": 10, "datatype": DOUBLE, "double_value": self.temp}
        level = {"name": "Level", "alias": 11, "datatype": INT32, "int_value": self.level % 2**32}
        self._publish("DBIRTH", "press", temp, level)

    def warm(self, temp: float) -> None:
        """Publish a new temperature of the device, and nothing else."""
        self.temp = temp
        self._publish("DDATA", "press", alias(10, double_value=temp))

    def fill(self, level: int) -> None:
        """Publish a new level of the device, and nothing else."""
        self.level = level
        self._publish("DDATA", "press", alias(11, int_value=level % 2**32))

    def turn(self, speed: int) -> None:
        """Publish a new speed of the node's motor."""
        self.speed = speed
        self._publish("NDATA", "", alias(1, int_value=speed))

    def lose_a_message(self, temp: float) -> None:
        """Count a message that nobody receives."""
        self.temp = temp
        self._seq = (self._seq + 1) % 256

    def lose_device(self) -> None:
        """Publish the death of the device."""
        self.has_device = False
        self._publish("DDEATH", "press")

    def die(self, session: int | None = None) -> None:
        """Publish the will, as the broker does when the connection breaks."""
        number = self.session if session is None else session
        payload = written(bd_seq(number), ms=None)
        self._client.publish(f"spBv1.0/plant/NDEATH/{self.name}", payload)

    def _publish(self, kind: str, device: str, *metrics: Metric) -> None:
        self._seq = (self._seq + 1) % 256
        self.milliseconds += 1_000
        where = f"{self.name}/{device}" if device else self.name
        payload = written(*metrics, seq=self._seq, ms=self.milliseconds)
        self._client.publish(f"spBv1.0/plant/{kind}/{where}", payload, qos=0)

    def _commanded(self, messages: list[Message]) -> None:
        for message in messages:
            (metric,) = PAYLOAD.FromString(message.payload).metrics
            assert (metric.name, metric.boolean_value) == (COMMAND, True)
            self.commands += 1
            if self.answers:
                self.be_born()
