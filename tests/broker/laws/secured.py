"""A federation's accounts at a broker, for the tests that run on both brokers."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from broker.access.dynamic_security import (
    Document,
    PasswordHash,
    client_of,
    encode_document,
    role_of,
)
from broker.access.rights import SiteKind, rights_of
from broker.access.security_commands import (
    Command,
    Response,
    decode_responses,
    encode_commands,
)
from broker.broker_launch import BrokerSecurity, Preference
from broker.broker_testing import BrokerProcess, RawClient

FEDERATION = "house"
ROOT = f"pando/v1/{FEDERATION}"
CONTROL = "$CONTROL/dynamic-security/v1"
SITES = {
    "coordinator": SiteKind.COORDINATOR,
    "base": SiteKind.BASE,
    "static": SiteKind.STATIC,
    "gw-1": SiteKind.GATEWAY,
    "gw-2": SiteKind.GATEWAY,
    "viewer": SiteKind.VIEWER,
    "lander": SiteKind.LANDER,
}
NOT_AUTHORIZED = 0x87


def write_accounts(file: Path) -> None:
    """Write a document with an account for each of `SITES`; the password is `pw-ID`."""
    document = Document(
        clients=tuple(
            client_of(site, PasswordHash.of(f"pw-{site}", site.encode().ljust(12), 101))
            for site in SITES
        ),
        roles=tuple(
            role_of(site, rights_of(kind, site, FEDERATION)) for site, kind in SITES.items()
        ),
    )
    file.write_bytes(encode_document(document))
    file.chmod(0o600)


@contextmanager
def secured_broker(kind: Preference, folder: Path) -> Iterator[BrokerProcess]:
    """Run a broker with accounts and without TLS."""
    accounts = folder / "dynamic-security.json"
    write_accounts(accounts)
    with BrokerProcess(kind, folder, BrokerSecurity(accounts)) as process:
        yield process


def connect(
    broker: BrokerProcess, site: str, password: str | None = None, client_id: str | None = None
) -> tuple[RawClient, int]:
    """Connect as a site with MQTT 5; return the client and the code of CONNACK."""
    client = RawClient(broker.port, client_id or site, 5)
    _, code = client.open(user=site, password=(password or f"pw-{site}").encode())
    return client, code


def connected(broker: BrokerProcess, site: str, password: str | None = None) -> RawClient:
    """Connect as a site that may."""
    client, code = connect(broker, site, password)
    assert code == 0
    return client


class Administration:
    """The coordinator's connection, as far as accounts are concerned."""

    def __init__(self, client: RawClient) -> None:
        self.client = client
        assert client.subscribe((f"{CONTROL}/response", 1)) == [1]

    def ask(self, *commands: Command) -> tuple[Response, ...]:
        """Send commands and wait for the answer."""
        self.client.publish(CONTROL, encode_commands(commands))
        return decode_responses(self.client.wait_for(1)[0].payload)

    def do(self, *commands: Command) -> None:
        """Send commands that must be carried out."""
        assert [answer.error for answer in self.ask(*commands)] == [""] * len(commands)
