"""A reader of server-sent events, for tests of consoles."""

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx

SECONDS = 60.0


def wait_for(condition: Callable[[], Any], what: str = "") -> Any:
    """Wait until something is true, at most `SECONDS`; return it."""
    deadline = time.monotonic() + SECONDS
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(0.02)
    return found


class Events:
    """Server-sent events of one address, read in a thread."""

    def __init__(self, address: str) -> None:
        self.seen: list[tuple[str, Any]] = []
        self.ended = False
        # Closed by the thread itself when the stream ends, at the latest with the console.
        self._client = httpx.Client(timeout=httpx.Timeout(SECONDS), trust_env=False)
        self._address = address
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Wait for the stream's end; the server or the query ends it."""
        self._thread.join(SECONDS)

    def wait(self, event: str, condition: Callable[[Any], bool] = lambda _value: True) -> Any:
        """Wait for an event and return its value."""

        def found() -> Any:
            for kind, value in tuple(self.seen):
                if kind == event and condition(value):
                    return (value,)
            return None

        return wait_for(found, f"{event} in {self.seen[-5:]}")[0]

    def _read(self) -> None:
        try:
            with self._client.stream("GET", self._address) as response:
                event = ""
                for line in response.iter_lines():
                    if line.startswith("event: "):
                        event = line[7:]
                    elif line.startswith("data: "):
                        self.seen.append((event, json.loads(line[6:])))
        except httpx.HTTPError as error:
            self.seen.append(("broken", str(error)))
        finally:
            self._client.close()
            self.ended = True
