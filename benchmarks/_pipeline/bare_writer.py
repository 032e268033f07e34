"""A bare writer to compare the lander with: paho, a list, a Parquet file a second.

    python bare_writer.py PORT FILTER FOLDER

It acknowledges what arrives, syncs nothing, and says when it has subscribed.
"""

import sys
import time
from pathlib import Path

import paho.mqtt.client as mqtt
import pyarrow as pa
import pyarrow.parquet as pq
from paho.mqtt.enums import CallbackAPIVersion


def main(port: int, topic_filter: str, folder: Path) -> None:
    """Write what arrives until killed."""
    waiting: list[tuple[str, bytes, int]] = []
    client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id="bare", clean_session=False)
    client.on_message = lambda _client, _data, message: waiting.append(
        (message.topic, bytes(message.payload), time.time_ns() // 1_000)
    )
    client.on_subscribe = lambda *_told: print("subscribed", flush=True)
    client.connect("127.0.0.1", port)
    client.subscribe(topic_filter, 1)
    number, due = 0, time.monotonic() + 1.0
    while True:
        client.loop(max(due - time.monotonic(), 0.0))
        if time.monotonic() < due:
            continue
        due += 1.0
        if waiting:
            topics, payloads, times = zip(*waiting, strict=True)
            waiting.clear()
            columns = {
                "topic": pa.array(topics, pa.string()),
                "payload": pa.array(payloads, pa.binary()),
                "arrived": pa.array(times, pa.timestamp("us", tz="UTC")),
            }
            number += 1
            pq.write_table(pa.table(columns), folder / f"{number:06d}.parquet", compression="zstd")


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
