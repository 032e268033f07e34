"""The thread in which large payloads are mapped, while the event loop goes on."""

import functools

from gateway.connectors.own_thread import OwnThread

LARGE_PAYLOAD = 4_000
"""Bytes of a payload that is mapped in the thread: the worst smaller one takes 40 ms, and half a
second a megabyte. To the thread and back takes 0.1 ms, a tenth of what an ordinary one takes."""


@functools.cache
def mapping_thread() -> OwnThread:
    """Return the thread of this process.

    One for all connectors: as many threads as work take as many turns from the event loop.
    """
    return OwnThread("mapping")
