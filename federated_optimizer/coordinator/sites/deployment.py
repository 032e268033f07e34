"""Publish fragments as retained messages, so that a site finds its work whenever it starts."""

from collections.abc import Callable, Iterable

from federated_optimizer.coordinator.sites.flows import sites_of
from host.mqtt import MessageClient
from streamsql.catalog.definitions import SourceDefinition
from streamsql.errors import UnsupportedError
from streamsql.wire.bounds import MAX_PAYLOAD_BYTES
from streamsql.wire.codec import encode_json, encode_packed
from streamsql.wire.fragments import FragmentBundle
from streamsql.wire.messages import Command, KeptSource, TableSet
from streamsql.wire.site_messages import SiteState
from streamsql.wire.site_settings import SiteSettings
from streamsql.wire.source_orders import encode_order
from streamsql.wire.stored_tables.lake_messages import LAKE, LakeRequest
from streamsql.wire.stored_tables.refresh_orders import RefreshOrder
from streamsql.wire.stored_tables.table_changes import CHANGE, TableChange
from streamsql.wire.topics import Topics, level_of

RefreshOrders = tuple[RefreshOrder, ...]


def _nothing(_bundle: FragmentBundle) -> None:
    """Do nothing before a bundle is published."""


class Deployment:
    """Messages to sites. Every method only queues them.

    Attributes:
        before_publish: Called with a bundle before it is published.
    """

    def __init__(self, client: MessageClient, topics: Topics, host: str) -> None:
        self._client = client
        self._topics = topics
        self._host = host
        self.before_publish: Callable[[FragmentBundle], None] = _nothing

    def publish(self, bundle: FragmentBundle, previous: FragmentBundle | None = None) -> None:
        """Give every site the bundle; sites of the previous one that are not in it lose theirs.

        Raises:
            UnsupportedError: The bundle is too large for a message.
            MessagingError: The message queue is full or closed.
        """
        payload = _payload(bundle)
        self.before_publish(bundle)
        sites = sites_of(bundle)
        for site in sites:
            self._retain(self._topics.fragment(bundle.query, site), payload)
        gone = set(sites_of(previous)) - set(sites) if previous is not None else set()
        for site in sorted(gone):
            self.withdraw_from(bundle.query, site)

    def publish_to(self, site: str, bundle: FragmentBundle) -> None:
        """Give one site the bundle again."""
        self._retain(self._topics.fragment(bundle.query, site), _payload(bundle))

    def withdraw(self, bundle: FragmentBundle) -> None:
        """Stop a query at all its sites and clear what they said went wrong."""
        for site in sites_of(bundle):
            self.withdraw_from(bundle.query, site)
            self.clear_problem(bundle.query, site)

    def withdraw_from(self, query: str, site: str) -> None:
        """Stop a query at one site."""
        self._retain(self._topics.fragment(query, site), b"")

    def settings(self, site: str, settings: SiteSettings) -> None:
        """Tell a site how to work."""
        self._retain(self._topics.settings(site), encode_json(settings))

    def remove_gateway(self, site: str, links: Iterable[tuple[str, ...]]) -> None:
        """Empty all that is retained of a gateway; its state last, by which others know it."""
        for levels in links:
            self._retain(self._topics.link(site, *levels), b"")
        self._retain(self._topics.birth(site), b"")
        self._retain(self._topics.state(site), b"")

    def clear_problem(self, query: str, site: str) -> None:
        """Remove a retained problem."""
        self._retain(self._topics.error(query, site), b"")

    def tables(
        self,
        definitions: tuple[SourceDefinition, ...],
        refreshed: RefreshOrders,
        kept: tuple[KeptSource, ...],
        static: str,
    ) -> None:
        """Tell the static engine about stored tables, refreshed views, and what the lake keeps."""
        orders = tuple(map(encode_packed, refreshed))
        self._retain(self._topics.tables(static), encode_json(TableSet(definitions, orders, kept)))

    def source(self, definition: SourceDefinition) -> None:
        """Tell gateways of a declared source.

        Raises:
            WireError: The definition is too large for a message.
        """
        self._retain(self._topics.source(level_of(definition.name)), encode_order(definition))

    def withdraw_source(self, name: str) -> None:
        """Tell gateways that a declared source is dropped."""
        self._retain(self._topics.source(level_of(name)), b"")

    def state(self, state: SiteState) -> None:
        """Say that the coordinator is there, or is leaving."""
        self._retain(self._topics.host_state(self._host), encode_json(state))

    def command(self, site: str, verb: str, command: Command) -> None:
        """Send a command to a site."""
        self._client.publish(self._topics.command(site, verb), encode_json(command))

    def ask_lake(self, site: str, request: LakeRequest) -> None:
        """Ask the static engine something about the lake."""
        self._client.publish(self._topics.command(site, LAKE), encode_packed(request))

    def change(self, site: str, change: TableChange) -> None:
        """Ask the static engine to change a table.

        Raises:
            UnsupportedError: The rows are too many for a message.
        """
        payload = encode_packed(change)
        if len(payload) > MAX_PAYLOAD_BYTES:
            raise UnsupportedError(
                f"these rows take {len(payload)} bytes; the max is {MAX_PAYLOAD_BYTES}",
                hint="insert them in several statements",
            )
        self._client.publish(self._topics.command(site, CHANGE), payload)

    def request_result(self, query: str, site: str) -> None:
        """Ask a result site for a snapshot."""
        self.request_snapshot(query, site, "")

    def request_snapshot(self, query: str, sender: str, to: str) -> None:
        """Ask a site to send a channel's contents again; "" is the result."""
        payload = encode_json(Command(query=query, channel=to or "out"))
        # A command, which only the coordinator may give: a request is for a channel of one's own.
        self._client.publish(self._topics.command(sender, "resync"), payload)

    def request_flow(self, site: str) -> None:
        """Ask a site to report its counts again."""
        self._client.publish(self._topics.command(site, "flow"), encode_json(Command()))

    def _retain(self, topic: str, payload: bytes) -> None:
        self._client.publish(topic, payload, retain=True)


def _payload(bundle: FragmentBundle) -> bytes:
    payload = encode_packed(bundle)
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise UnsupportedError(
            f"the plan takes {len(payload)} bytes; the max is {MAX_PAYLOAD_BYTES}",
            hint="split the statement into views that run as separate queries",
        )
    return payload
