"""A bare subscriber that counts what the coordinator would receive: the baseline.

python -m benchmarks._fleet_cost.counting_subscriber PORT
"""

import sys

import paho.mqtt.client as mqtt

FILTERS = (
    "pando/v1/bench/gw/+/state",
    "pando/v1/bench/gw/+/birth",
    "pando/v1/bench/host/+/state",
    "pando/v1/bench/gw/+/link/#",
    "pando/v1/bench/q/+/out/+",
    "pando/v1/bench/gw/+/flow",
    "pando/v1/bench/gw/+/columns",
    "pando/v1/bench/q/+/error/+",
    "pando/v1/bench/gw/+/clock",
    "pando/v1/bench/gw/+/rsp/+",
)


class Counter:
    """Counts messages and bytes."""

    def __init__(self) -> None:
        self.messages = self.bytes = 0

    def connected(self, client: mqtt.Client, *_: object) -> None:
        """Subscribe."""
        client.subscribe([(topic, 1) for topic in FILTERS])

    def heard(self, _client: mqtt.Client, _data: object, message: mqtt.MQTTMessage) -> None:
        """Count one."""
        self.messages += 1
        self.bytes += len(message.payload)


def main(port: int) -> None:
    """Count until the process is ended."""
    counter = Counter()
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, "bench-counter")
    client.on_connect = counter.connected
    client.on_message = counter.heard
    client.connect("127.0.0.1", port)
    client.loop_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]))
