"""Options of the connector http."""

import re
from enum import StrEnum
from urllib.parse import urlsplit

import msgspec

from gateway.connectors.options import Seconds
from streamsql.errors import DeploymentError

LEAST_INTERVAL = 0.1
MAX_HOSTS = 1_000
MAX_PATH = 2_000
MAX_HEADERS = 20
HOST = "{host}"
"""In the url of an endpoint: each of the source's `hosts` in turn."""

_HOST = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252})|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?")
_PATH = re.compile(r"/[!-~]*")
_BASE = re.compile(r"https?://[!-~]+")


class Login(StrEnum):
    """Scheme by which user and password are sent."""

    BASIC = "basic"
    DIGEST = "digest"


class HttpEndpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base address of pages, and the credentials for it.

    Attributes:
        url: Such as http://10.0.0.7 or https://meter:8443/api; paths of sources are appended.
            `{host}` in place of the host: every source says which hosts it reads, and they all
            get the login.
        user, password: Of the login.
        login: How both are sent.
        token: Sent as `Authorization: Bearer …` instead.
        headers: Sent with every request, such as an API key.
        ca_file: Certificates (PEM) to trust instead of those of the system.
        check_certificate: Whether a certificate must be one of those; many devices sign their own.
        timeout: Of one request, its redirects and its whole answer.
    """

    url: str
    user: str = ""
    password: str = ""
    login: Login = Login.BASIC
    token: str = ""
    headers: dict[str, str] = {}
    ca_file: str = ""
    check_certificate: bool = True
    timeout: Seconds = Seconds(10)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url.replace(HOST, "host", 1))
        _require(bool(_BASE.fullmatch(self.url) and parts.hostname), "url: write http://10.0.0.7")
        _require(
            not parts.query and not parts.fragment, "url: remove ? and #; they belong in `path`"
        )
        _require("@" not in parts.netloc, "url: write user and password as separate options")
        _require(
            HOST not in self.url or urlsplit(self.url).netloc.startswith(HOST),
            "url: {host} stands for the host only, as in http://{host}:8080/api",
        )
        _require(
            "{" not in self.url.replace(HOST, "", 1),
            "url: {host} is the only name in braces that is allowed",
        )
        _require(not (self.token and self.user), "write a token, or user and password, not both")
        _require(len(self.headers) <= MAX_HEADERS, f"headers: at most {MAX_HEADERS}")
        _require(0.1 <= self.timeout <= 300, "timeout: between 0.1 s and 5 min")


class HttpSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which page, and how often.

    Attributes:
        path: Appended to the endpoint's url; with its query, if it has one.
        hosts: Where the endpoint's url has `{host}`: 'pdu-1, pdu-2:8080'.
        interval: From one request to the next, for each host.
    """

    path: str = "/"
    hosts: str = ""
    interval: Seconds = Seconds(60)

    def __post_init__(self) -> None:
        _require(
            bool(_PATH.fullmatch(self.path))
            and len(self.path) <= MAX_PATH
            and "#" not in self.path,
            f"path: begin with /, without spaces (write %20), at most {MAX_PATH} characters",
        )
        _require(
            self.interval >= LEAST_INTERVAL, f"interval: at least {LEAST_INTERVAL} s between polls"
        )
        for host in self.host_list:
            _require(bool(_HOST.fullmatch(host)), f"hosts: {host!r:.80} is no host or host:port")
        _require(len(self.host_list) <= MAX_HOSTS, f"hosts: at most {MAX_HOSTS}")
        _require(len(set(self.host_list)) == len(self.host_list), "hosts: one is named twice")

    @property
    def host_list(self) -> tuple[str, ...]:
        """The hosts, in order."""
        return tuple(host for part in self.hosts.split(",") if (host := part.strip()))


def page_urls(endpoint: HttpEndpoint, source: HttpSource) -> tuple[str, ...]:
    """Return the address of a source's page at each of its hosts.

    Raises:
        ValueError: Hosts are missing, or the endpoint takes none.

    Examples:
        >>> page_urls(HttpEndpoint("http://{host}/api"), HttpSource("/now", hosts="a, b:81"))
        ('http://a/api/now', 'http://b:81/api/now')
    """
    base = endpoint.url.rstrip("/")
    hosts = source.host_list
    if HOST not in base:
        if hosts:
            raise ValueError(f"hosts: the endpoint's url is of one host; write {HOST} there")
        return (base + source.path,)
    if not hosts:
        raise ValueError(
            f"hosts: the endpoint's url has {HOST}; write hosts = '10.0.0.7, 10.0.0.8'"
        )
    return tuple(base.replace(HOST, host) + source.path for host in hosts)


def _require(is_right: bool, text: str) -> None:
    if not is_right:
        raise DeploymentError(text)
