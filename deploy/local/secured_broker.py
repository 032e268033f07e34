"""Accounts and TLS of the broker, and TLS of the console, that `pando up --secure` starts.

The accounts outlive a run: the coordinator adds gateways that are enrolled. What services need is
made anew where it is missing: passwords, rights of today, the broker's certificate.
"""

import datetime as dt
import ipaddress
import socket
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec
import psutil

from broker.access.dynamic_security import Document, decode_document, encode_document
from broker.access.initial_accounts import (
    Account,
    kind_of,
    new_password,
    with_accounts,
    with_rights_of_today,
)
from broker.broker_launch import BrokerSecurity
from broker.free_ports import HOST
from deploy.local.configure import FEDERATION
from deploy.local.layout import Layout
from deploy.local.service_processes import BROKER
from deploy.local.up_options import UpOptions
from gateway.gateway_settings import GatewaySettings
from host.certificates.certificate_files import (
    AUTHORITY_CERTIFICATE,
    CertificatePaths,
    ensure_server_certificate,
    open_or_make_authority,
)
from host.files.atomic_file import PRIVATE, replace_file
from host.mqtt.broker_passwords import PasswordFile
from static_engine.landing.lander_settings import LanderSettings
from static_engine.static_settings import StaticSettings
from streamsql.errors import DeploymentError
from ui.console_settings import ConsoleSettings

SITES = ("coordinator", "base", "static", "lander", "viewer")
"""Accounts besides those of the gateways; `viewer` is for people who look."""
MAX_ADDRESSES = 50
"""Addresses of this machine that a certificate is for."""

ServiceSettings = TypeVar(
    "ServiceSettings", GatewaySettings, ConsoleSettings, StaticSettings, LanderSettings
)


@dataclass(frozen=True, slots=True)
class BrokerPlace:
    """A broker as services reach it.

    Attributes:
        address: `mqtt://…` or `mqtts://…`, without a name or password.
        layout: Where passwords and the authority are; None: everybody may connect.
    """

    address: str
    layout: Layout | None = None

    def given_to(self, settings: ServiceSettings, site: str) -> ServiceSettings:
        """Return the settings of a service with what it needs to connect as a site."""
        if self.layout is None:
            return settings
        scheme, _, place = self.address.partition("://")
        return msgspec.structs.replace(
            settings,
            broker=f"{scheme}://{site}@{place}",
            broker_ca=str(self.layout.authority / AUTHORITY_CERTIFICATE),
            broker_password_file=str(self.layout.passwords / site),
        )

    def given_to_console(self, settings: ConsoleSettings, options: UpOptions) -> ConsoleSettings:
        """Return the settings of the console, which also enrols gateways.

        Raises:
            DeploymentError: Its certificate cannot be made.
        """
        if self.layout is None:
            return settings
        port = self.address.rpartition(":")[2]
        name = socket.gethostname()
        given = msgspec.structs.replace(
            self.given_to(settings, "coordinator"),
            authority=str(self.layout.authority),
            gateway_broker=f"mqtts://{name}:{port}" if options.broker_listen else "",
            base_sites=("base",),
        )
        if not options.console_host:
            return given
        certificate = certificate_for(self.layout, "console", options.console_host)
        return msgspec.structs.replace(
            given,
            host=options.console_host,
            tls_cert=str(certificate.certificate),
            tls_key=str(certificate.key),
            allowed_hosts=",".join(filter(None, (given.allowed_hosts, name))),
        )


def console_trust(layout: Layout) -> ssl.SSLContext:
    """Return what the console's certificate is checked with."""
    return ssl.create_default_context(cafile=str(layout.authority / AUTHORITY_CERTIFICATE))


def reached_at(listen: str) -> str:
    """Return the address at which this machine reaches what listens on one.

    Examples:
        >>> reached_at("0.0.0.0"), reached_at("192.168.1.7")
        ('127.0.0.1', '192.168.1.7')
    """
    return HOST if ipaddress.ip_address(listen).is_unspecified else listen


def secured_broker(layout: Layout, gateways: Iterable[str], listen: str = HOST) -> BrokerSecurity:
    """Make what is missing of accounts, passwords and certificates.

    Args:
        layout: Where they are kept.
        gateways: Their ids.
        listen: IP address that the broker listens on.

    Raises:
        DeploymentError: A file is damaged or cannot be written.
    """
    accounts = layout.data(BROKER) / "dynamic-security.json"
    try:
        passwords = {site: _password(layout, site) for site in (*SITES, *gateways)}
        made = with_accounts(
            # Gateways that were enrolled with an earlier version need what this one needs.
            with_rights_of_today(_document(accounts), FEDERATION),
            {site: Account(kind_of(site), word) for site, word in passwords.items()},
            FEDERATION,
        )
        accounts.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(accounts, encode_document(made), mode=PRIVATE)
    except OSError as error:
        raise _unwritable(error) from error
    broker = certificate_for(layout, "broker", listen)
    return BrokerSecurity(accounts, broker.certificate, broker.key, host=listen)


def certificate_for(layout: Layout, service: str, listen: str) -> CertificatePaths:
    """Return the certificate of a service that listens on an address; make what is missing.

    Raises:
        DeploymentError: A file is damaged or cannot be written.
    """
    now = dt.datetime.now(dt.UTC)
    try:
        authority = open_or_make_authority(layout.authority, f"Pando {FEDERATION}", now)
        names = names_of_machine(listen)
        return ensure_server_certificate(authority, layout.authority, service, names, now)
    except OSError as error:
        raise _unwritable(error) from error


def _unwritable(error: OSError) -> DeploymentError:
    return DeploymentError(
        f"cannot write {error.filename}: {error.strerror}",
        hint="choose another directory with --data",
    )


def _document(accounts: Path) -> Document:
    if not accounts.exists():
        return Document()
    try:
        return decode_document(accounts.read_bytes())
    except ValueError as error:
        raise DeploymentError(
            f"accounts of the broker {accounts}: {error}",
            hint="remove the file to begin with new accounts; enrolled gateways have to join again",
        ) from error


def _password(layout: Layout, site: str) -> str:
    """Return the password of a site; make it where there is none."""
    file = layout.passwords / site
    if file.exists():
        return PasswordFile(file).next()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    password = new_password()
    replace_file(file, f"{password}\n".encode(), mode=PRIVATE)
    return password


def names_of_machine(listen: str) -> tuple[str, ...]:
    """Return the names and addresses by which clients reach what listens on an address."""
    names = ["localhost", "127.0.0.1", "::1"]
    if ipaddress.ip_address(listen).is_loopback:
        return (*names, listen)
    hostname = socket.gethostname()
    found = [
        address.address
        for interface in psutil.net_if_addrs().values()
        for address in interface
        if address.family in (socket.AF_INET, socket.AF_INET6) and "%" not in address.address
    ]
    is_name = all(part.isalnum() for part in hostname.replace("-", "").split("."))
    more = (hostname,) if is_name else ()
    return tuple(dict.fromkeys((*names, *more, *found[:MAX_ADDRESSES])))
