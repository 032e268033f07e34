"""An ordinary MQTT 5 client library (paho) finds its properties respected."""

import queue
import time
from typing import Any

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from broker.broker_testing import PATIENCE, BrokerProcess

pytestmark = pytest.mark.broker


def test_properties_travel_with_the_message(shared_broker: BrokerProcess, root: str) -> None:
    client = paho.Client(CallbackAPIVersion.VERSION2, client_id=f"{root}-v5", protocol=paho.MQTTv5)
    got: queue.Queue[paho.MQTTMessage] = queue.Queue()
    ready: queue.Queue[bool] = queue.Queue()
    client.on_message = lambda _client, _userdata, message: got.put(message)
    client.on_subscribe = lambda *_: ready.put(True)
    connect: Any = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    connect.ReceiveMaximum = 10
    connect.SessionExpiryInterval = 5
    client.connect("127.0.0.1", shared_broker.port, properties=connect)
    client.loop_start()
    try:
        properties: Any = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        properties.ContentType = "application/senml+json"
        properties.ResponseTopic = "answer/here"
        properties.CorrelationData = b"\x01\x02"
        properties.UserProperty = [("room", "101"), ("room", "102")]
        properties.MessageExpiryInterval = 60
        properties.PayloadFormatIndicator = 1
        published = time.monotonic()
        kept = client.publish(f"{root}/a", b"kept", 1, retain=True, properties=properties)
        kept.wait_for_publish(PATIENCE)
        client.subscribe(f"{root}/#", 1)
        assert ready.get(timeout=PATIENCE)
        for qos, retain in ((1, True), (0, False)):
            if qos == 0:
                published = time.monotonic()
                client.publish(f"{root}/b", b"live", 0, properties=properties)
            message = got.get(timeout=PATIENCE)
            assert (message.qos, message.retain) == (qos, retain)
            found: Any = message.properties
            assert found is not None
            assert found.ContentType == "application/senml+json"
            assert found.ResponseTopic == "answer/here"
            assert found.CorrelationData == b"\x01\x02"
            assert found.UserProperty == [("room", "101"), ("room", "102")]
            assert found.PayloadFormatIndicator == 1
            waited = time.monotonic() - published
            assert 59 - waited <= found.MessageExpiryInterval <= 60
    finally:
        client.disconnect()
        client.loop_stop()
        client._reset_sockets()  # else a finalizer does, too late or too early
