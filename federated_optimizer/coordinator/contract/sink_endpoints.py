"""Receivers by name: the settings of the console say which address and secret a name stands for."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

import msgspec

from host.files.option_problems import ADD_TO_ENDPOINT, option_problem
from host.files.settings_file import require
from host.mqtt.broker_address import parse_address
from streamsql.catalog.connectors import is_endpoint_name
from streamsql.errors import DeploymentError

STANDARD_PREFIX = "whsec_"


class MqttSinkEndpoint(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="connector",
    tag="mqtt",
):  # fmt: skip
    """A broker; the names are those of the endpoints of gateways.

    Attributes:
        address: `mqtt://host:port`, or `mqtts://` for TLS.
        ca: File of the authority that signed the broker's certificate; empty: the system's.
        cert: File of our certificate.
        key: File of its private key.
        client_id: Empty: made of federation and endpoint.
        keepalive: Seconds of silence after which either side doubts the other.
    """

    address: str
    username: str = ""
    password: str = ""
    ca: str = ""
    cert: str = ""
    key: str = ""
    client_id: str = ""
    keepalive: int = 15

    def __post_init__(self) -> None:
        parse_address(self.address)
        require(5 <= self.keepalive <= 3_600, "keepalive must be between 5 and 3600 seconds")
        require(len(self.client_id) <= 100, "client_id has more than 100 characters")

    @property
    def url(self) -> str:
        """The address with user and password."""
        if not self.username:
            return self.address
        scheme, _, rest = self.address.partition("://")
        host = rest.rpartition("@")[2]
        return f"{scheme}://{quote(self.username, safe='')}:{quote(self.password, safe='')}@{host}"


class WebhookEndpoint(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="connector",
    tag="webhook",
):  # fmt: skip
    """A receiver of HTTP POST.

    Attributes:
        url: `https://…`, or `http://…` within a network of yours.
        secret: Requests are signed with it: a text, or `whsec_` and base64.
        headers: Sent with each request, for example an Authorization.
        ca: File of the authority that signed the receiver's certificate; empty: the system's.
    """

    url: str
    secret: str
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    ca: str = ""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        require(
            parts.scheme in ("http", "https") and bool(parts.hostname),
            "url is not an address such as https://receiver.example/pando",
        )
        require(len(self.signing_key) >= 16, "secret is shorter than 16 bytes")
        require(len(self.headers) <= 20, "headers are more than 20")
        for name, value in self.headers.items():
            plain = f"{name}{value}"
            require(plain.isprintable() and plain.isascii(), "headers hold other than ASCII")

    @property
    def signing_key(self) -> bytes:
        """The secret's bytes.

        Raises:
            ValueError: What follows `whsec_` is not base64.
        """
        if not self.secret.startswith(STANDARD_PREFIX):
            return self.secret.encode()
        try:
            return base64.b64decode(self.secret.removeprefix(STANDARD_PREFIX), validate=True)
        except binascii.Error:
            raise ValueError("secret begins with whsec_, but no base64 follows") from None


SinkEndpoint = MqttSinkEndpoint | WebhookEndpoint


def sink_endpoints(settings: Mapping[str, Any]) -> dict[str, SinkEndpoint]:
    """Return the endpoints in settings, checked.

    Raises:
        DeploymentError: One is wrong; names it, and holds no secret.
    """
    found: dict[str, SinkEndpoint] = {}
    for name, value in settings.items():
        if not is_endpoint_name(name):
            raise DeploymentError(
                f"settings: {name!r:.80} is not the name of an endpoint",
                hint="use 1 to 64 letters, digits, '_', '.' or '-'",
            )
        found[name] = _endpoint(f"endpoint {name}", value)
    return found


def sink_endpoint_kind(connector: str) -> type[SinkEndpoint]:
    """Return the struct of a connector's endpoints.

    Raises:
        DeploymentError: Sinks have no such connector.
    """
    kinds: Mapping[str, type[SinkEndpoint]] = {"mqtt": MqttSinkEndpoint, "webhook": WebhookEndpoint}
    kind = kinds.get(connector)
    if kind is None:
        raise DeploymentError(
            f"connector {connector!r:.60} sends to nobody",
            hint=f"an endpoint of sinks has the connector {' or '.join(kinds)}",
        )
    return kind


def _endpoint(what: str, value: Any) -> SinkEndpoint:
    """Return an endpoint; raises as `sink_endpoints` does."""
    if not isinstance(value, Mapping):
        raise DeploymentError(f"settings: {what} has to be a JSON object of its options")
    try:
        kind = sink_endpoint_kind(str(value.get("connector", "")))
    except DeploymentError as error:
        raise DeploymentError(f"settings: {what}: {error.message}", hint=error.hint) from None
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, ValueError) as error:
        raise option_problem(what, error, kind, ADD_TO_ENDPOINT) from None
