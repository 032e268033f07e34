"""Credentials that a federation gives a gateway: certificate, password, the way to the broker."""

import datetime as dt
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from federated_optimizer.coordinator.contract.coordinator_settings import FleetSettings
from federated_optimizer.coordinator.contract.fleet_model import JoinRefusedError
from host.mqtt.broker_address import BrokerAddress, parse_address
from streamsql.errors import DeploymentError

PASSWORD_BYTES = 32


@dataclass(frozen=True, slots=True)
class IssuedCertificate:
    """A gateway's certificate; all empty where the federation has no authority.

    Attributes:
        pem: In PEM form.
        serial: Its number as hexadecimal digits.
        valid_until: Microseconds since 1970.
    """

    pem: str = ""
    serial: str = ""
    valid_until: int = 0


class GatewayCredentials:
    """Makes them, by the settings of the fleet.

    Blocks for milliseconds: it reads the authority's files and signs. The libraries for it are
    loaded at the first use.

    Args:
        settings: Where authority and broker are.
        clock: Wall-clock microseconds.
    """

    def __init__(self, settings: FleetSettings, clock: Callable[[], int]) -> None:
        self._settings = settings
        self._clock = clock

    @property
    def authority(self) -> str:
        """Certificate of the authority in PEM form; empty where there is none.

        Raises:
            DeploymentError: The file cannot be read.
        """
        from host.certificates.certificate_files import (  # noqa: PLC0415
            AUTHORITY_CERTIFICATE,
            has_authority,
            read_pem,
        )

        folder = self._folder
        if folder is None or not has_authority(folder):
            return ""
        what = "certificate of the authority"
        return read_pem(folder / AUTHORITY_CERTIFICATE, what).decode("ascii", "replace")

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the authority's certificate as hexadecimal digits, or empty.

        Raises:
            DeploymentError: The file cannot be read, or is no certificate.
        """
        from host.certificates.certificate_facts import facts_of  # noqa: PLC0415

        pem = self.authority
        return facts_of(pem.encode(), "certificate of the authority").fingerprint if pem else ""

    def issue(self, name: str, request: str) -> IssuedCertificate:
        """Sign a gateway's request.

        Args:
            name: That the request has to be for.
            request: In PEM form.

        Raises:
            JoinRefusedError: The request is not good.
            DeploymentError: The authority cannot be used.
        """
        from host.certificates.certificate_facts import facts_of  # noqa: PLC0415
        from host.certificates.certificate_files import (  # noqa: PLC0415
            has_authority,
            open_authority,
        )
        from host.certificates.certificate_request import judge_request  # noqa: PLC0415

        try:
            judged = judge_request(request.encode())
        except DeploymentError as error:
            raise JoinRefusedError(error.message, hint=error.hint) from error
        if judged.common_name != name:
            raise JoinRefusedError(
                f"the certificate request is for {judged.common_name!r:.80}, the token for {name!r}"
            )
        folder = self._folder
        if folder is None or not has_authority(folder):
            return IssuedCertificate()
        now = dt.datetime.fromtimestamp(self._clock() / 1_000_000, dt.UTC)
        pem = open_authority(folder, now).sign_client(judged, now)
        facts = facts_of(pem)
        return IssuedCertificate(
            pem.decode(), facts.serial, int(facts.valid_until.timestamp() * 1_000_000)
        )

    @property
    def broker(self) -> BrokerAddress:
        """Address of the broker for gateways.

        Raises:
            DeploymentError: There is none that another machine could use.
        """
        try:
            return parse_address(self._settings.broker)
        except ValueError as error:
            raise DeploymentError(f"setting gateway_broker: {error}") from error

    @property
    def broker_ca(self) -> str:
        """Certificates in PEM form that a gateway trusts at the broker; empty: the system's.

        Raises:
            DeploymentError: The file cannot be read.
        """
        from host.certificates.certificate_files import read_pem  # noqa: PLC0415

        if not self.broker.tls:
            return ""
        if not self._settings.broker_ca:
            return self.authority
        what = "authority of the broker's certificate"
        return read_pem(Path(self._settings.broker_ca), what).decode("ascii", "replace")

    @property
    def _folder(self) -> Path | None:
        return Path(self._settings.authority) if self._settings.authority else None


def new_password() -> str:
    """Return 256 random bits as text."""
    return secrets.token_urlsafe(PASSWORD_BYTES)
