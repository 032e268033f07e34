"""A live network in a process of its own, so that memory is its own and all take turns."""

import gc
import multiprocessing
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

from benchmarks._argus.arriving_rows import Stream
from benchmarks._argus.live_network import LiveNetwork, Update
from gateway.__main__ import COLLECTIONS

_FORK = multiprocessing.get_context("fork")
"""A fork has the rows of the stream already, and hashes texts as its siblings do."""


class Contestant:
    """A configuration that runs in a child process.

    Args:
        configuration: Its name.
        stream: What the network reads.
    """

    def __init__(self, configuration: str, stream: Stream) -> None:
        self.configuration = configuration
        self._connection, theirs = _FORK.Pipe()
        self._process = _FORK.Process(
            target=_serve, args=(theirs, stream, configuration), daemon=True
        )
        self._process.start()
        theirs.close()

    def register(self, texts: Sequence[str]) -> dict[str, list[float]]:
        """Register queries; see `LiveNetwork.register`."""
        found: dict[str, list[float]] = self._call("register", list(texts))
        return found

    def update(self, number: int) -> Update:
        """Ingest a batch."""
        found: Update = self._call("update", number)
        return found

    def figures(self) -> dict[str, Any]:
        """Return size, memory and marks of the answers."""
        found: dict[str, Any] = self._call("figures")
        return found

    def unlike_duckdb(self) -> list[str]:
        """Return the queries whose rows are not those of DuckDB."""
        found: list[str] = self._call("unlike_duckdb")
        return found

    def stop_running(self) -> None:
        """Give up all rows; queries are only planned from here on."""
        self._call("stop_running")

    def close(self) -> None:
        """End the process; nothing happens if it has ended."""
        if self._process.is_alive():
            # A sibling holds a copy of our end of the pipe, so closing that does not end it.
            self._connection.send(None)
            self._process.join()

    def _call(self, method: str, *arguments: object) -> Any:
        self._connection.send((method, arguments))
        failed, answer = self._connection.recv()
        if failed:
            raise RuntimeError(f"{self.configuration}: {answer}")
        return answer


def _serve(connection: Connection, stream: Stream, configuration: str) -> None:
    """Answer calls until there are no more."""
    gc.freeze()
    gc.set_threshold(*COLLECTIONS)
    network = LiveNetwork(stream, configuration)
    while (call := connection.recv()) is not None:
        method, arguments = call
        try:
            answer = getattr(network, method)(*arguments)
            if method == "register":
                # Sites do not plan: what planning has left is no part of an update.
                gc.collect()
            connection.send((False, answer))
        except Exception:  # noqa: BLE001  (told to the parent, which raises it)
            connection.send((True, traceback.format_exc()))
