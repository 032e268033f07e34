"""A gateway joins a federation: token and request to the console, files from its answer."""

from pathlib import Path

from gateway.join.console_requests import console_address, fetch_authority, send_request
from gateway.join.joined_files import check_folder, write_joined
from host.certificates.certificate_request import make_request
from streamsql.errors import DeploymentError
from streamsql.wire.enrolment import JoinRequest, decode_token


def join(
    url: str,
    token: str,
    folder: Path | None = None,
    ca: Path | None = None,
    *,
    metrics_port: int = 0,
) -> Path:
    """Join the federation of a console; return the settings file to start the gateway with.

    Args:
        url: The console's.
        token: As an administrator handed it over.
        folder: For settings, credentials and data; None: named after the gateway, here.
        ca: Authority of the console's certificate, where it is neither the federation's nor one
            that this machine trusts.
        metrics_port: Setting of this name; 0 leaves it as it is.

    Raises:
        DeploymentError: The token is damaged, the console cannot be reached, is not trusted or
            refuses, or files cannot be written.
    """
    address = console_address(url)
    parsed = decode_token(token)
    folder = (folder or Path(parsed.gateway)).resolve()
    check_folder(folder, parsed.gateway)
    authority = fetch_authority(address, parsed.authority) if parsed.authority else ""
    made = make_request(parsed.gateway)
    request = JoinRequest(token.strip(), made.request.decode())
    answer = send_request(address, request, authority, ca)
    if answer.gateway != parsed.gateway:
        raise DeploymentError(f"console {address} answered for {answer.gateway!r:.80}")
    more = {"metrics_port": metrics_port} if metrics_port else {}
    return write_joined(folder, answer, made.key, more)
