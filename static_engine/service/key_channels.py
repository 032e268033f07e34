"""Batches of keys from other sites, and requests for those that were missed."""

import time
from collections.abc import Mapping

from host.mqtt import MessageClient
from host.mqtt.publishing import publish_or_warn
from host.resync_requests import Channel, ResyncRequests
from static_engine.service.installed_fragments import InstalledQuery
from streamsql.wire.codec import encode_json
from streamsql.wire.messages import Command, DeltaBatch
from streamsql.wire.topics import Topics

Queries = Mapping[str, InstalledQuery]


class KeyChannels:
    """Hands batches to their queries and asks senders for snapshots.

    Args:
        client: To ask with.
        topics: Of the federation.
        site: Our id.
    """

    def __init__(self, client: MessageClient, topics: Topics, site: str) -> None:
        self._client = client
        self._topics = topics
        self._site = site
        self._requests = ResyncRequests()

    def receive(self, queries: Queries, query: str, sender: str, batch: DeltaBatch) -> None:
        """Ingest a batch; one of a query that is not here is dropped: it comes as a snapshot.

        Raises:
            WireError: It does not fit the plan.
        """
        installed = queries.get(query)
        if installed is not None:
            installed.keyed.received.accept(sender, batch)

    def connected(self, queries: Queries) -> None:
        """Have every sender send a snapshot: what it has sent meanwhile is lost."""
        self._requests.want(
            [(name, by) for name, q in queries.items() for by in q.keyed.received.channels]
        )

    def ask(self, queries: Queries) -> None:
        """Ask the senders that are due for a snapshot."""
        if not self._client.connected:
            return
        for query, sender in self._requests.due(_waiting(queries), time.monotonic()):
            command = Command(query=query, channel=self._site)
            topic = self._topics.request(sender, "resync", self._site)
            publish_or_warn(self._client, topic, encode_json(command))

    def seconds_to_next(self, queries: Queries) -> float:
        """Return the seconds to the next request; infinite if there is none."""
        due = self._requests.next_due(_waiting(queries)) if self._client.connected else None
        return float("inf") if due is None else due - time.monotonic()


def _waiting(queries: Queries) -> list[Channel]:
    return [
        (name, sender)
        for name, query in queries.items()
        for sender in query.keyed.received.unsynchronised()
    ]
