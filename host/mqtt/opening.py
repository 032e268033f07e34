"""Open a client by URL: the one place where services choose an implementation."""

from pathlib import Path
from typing import Protocol

from host.mqtt.broker_address import CertificateFile, parse_address, tls_context
from host.mqtt.broker_passwords import PasswordFile, password_file
from host.mqtt.message_client import MessageClient, Will
from host.mqtt.paho_client import MqttClient
from host.mqtt.paho_link import LinkSettings
from streamsql.errors import DeploymentError


def open_client(  # noqa: PLR0913 - each is a setting an operator may give
    url: str,
    client_id: str,
    *,
    will: Will | None = None,
    clean: bool = True,
    keepalive: int = 10,
    max_pending: int = 10_000,
    max_pending_bytes: int = 64 * 1024 * 1024,
    ca: Path | str = "",
    cert: Path | str = "",
    key: Path | str = "",
    prefers_5: bool = False,
    passwords: PasswordFile | None = None,
    acknowledges_by_hand: bool = False,
) -> MessageClient:
    """Build a client (not yet connected) for `mqtt://[user:pass@]host[:port]` or `mqtts://…`.

    Args:
        url: Broker.
        client_id: MQTT client id; a second connection with the same id takes over.
        will: Published by the broker when we vanish.
        clean: False keeps subscriptions and QoS 1 messages at the broker while we are away.
        keepalive: Seconds; the broker declares us dead after 1.5 of it.
        max_pending: Bound on unacknowledged publishes.
        max_pending_bytes: Bound on their payloads together, in bytes.
        ca: Authority that signed the broker's certificate (`mqtts` only); empty for the system's.
        cert: Our certificate (`mqtts` only), or empty.
        key: Its private key (`mqtts` only); empty when `cert` holds both.
        prefers_5: Speak MQTT 5 with brokers that can, 3.1.1 with others: only with 5 a broker
            says that it does not take a publish (`PublishTicket.refusal`). Needs `clean`.
        passwords: Used instead of the URL's, with `client_id` where the URL names no user.
        acknowledges_by_hand: Messages of QoS 1 are acknowledged by `MessageClient.acknowledge`
            only, not as they arrive.

    Raises:
        ValueError: A malformed URL, id or will, or unusable TLS files.
    """
    address = parse_address(url)
    if not client_id or len(client_id.encode()) > 65_535 or "\0" in client_id:
        raise ValueError(f"client id {client_id[:40]!r} must have 1 to 65535 bytes and no NUL")
    if not address.tls and (ca or cert or key):
        raise ValueError(f"TLS files were given but {address} is not an mqtts:// address")
    if prefers_5 and not clean:
        raise ValueError("a session that is kept is one of MQTT 3.1.1")
    tls = tls_context(*map(_path, (ca, cert, key))) if address.tls else None
    settings = LinkSettings(
        address=address,
        client_id=client_id,
        will=will,
        clean=clean,
        keepalive=keepalive,
        tls=tls,
        prefers_5=prefers_5,
        certificate=CertificateFile(tls, Path(cert), _path(key)) if tls and cert else None,
        passwords=passwords,
        acknowledges_by_hand=acknowledges_by_hand,
    )
    return MqttClient(settings, max_pending=max_pending, max_pending_bytes=max_pending_bytes)


class BrokerSettings(Protocol):
    """Where a service's settings say its broker is."""

    @property
    def broker(self) -> str:
        """Address, with user and password."""

    @property
    def broker_ca(self) -> str:
        """Authority of the broker's certificate, with `mqtts`; empty for the system's."""

    @property
    def broker_cert(self) -> str:
        """Our certificate, with `mqtts`."""

    @property
    def broker_key(self) -> str:
        """Its private key, with `mqtts`."""

    @property
    def broker_password_file(self) -> str:
        """File with the password at the broker, or empty."""


def open_service_client(  # noqa: PLR0913 - what is particular to a service
    settings: BrokerSettings,
    client_id: str,
    will: Will,
    *,
    keepalive: int = 10,
    prefers_5: bool = False,
    passwords: PasswordFile | None = None,
    clean: bool = True,
    acknowledges_by_hand: bool = False,
) -> MessageClient:
    """Build the client of a service, not yet connected; see `open_client`.

    `passwords` are those of the settings, where the caller changes them.

    Raises:
        DeploymentError: The settings of the broker are wrong.
    """
    try:
        return open_client(
            settings.broker,
            client_id,
            will=will,
            clean=clean,
            keepalive=keepalive,
            ca=settings.broker_ca,
            cert=settings.broker_cert,
            key=settings.broker_key,
            prefers_5=prefers_5,
            passwords=passwords or password_file(settings.broker_password_file),
            acknowledges_by_hand=acknowledges_by_hand,
        )
    except ValueError as error:
        # Without the address: it may hold a password.
        raise DeploymentError(f"settings: {error}") from error


def _path(text: Path | str) -> Path | None:
    return Path(text) if text else None
