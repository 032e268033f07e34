"""Talk to a running console."""

import contextlib
import json
import os
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from streamsql.errors import BindingError, DeploymentError, FederationError, Span
from ui.cli.federations import authority_at
from ui.cli.sign_ins import secret_for

DEFAULT_ADDRESS = "http://127.0.0.1:8420"
SECONDS = 30.0
QUESTION_SECONDS = 120.0
"""For questions about rows, which are computed from scratch."""

Object = dict[str, Any]


class ConsoleClient:
    """Requests to one console.

    All raise FederationError: the console is not there, or refuses.
    """

    def __init__(self, address: str | None, *, secret: str | None = None) -> None:
        """Ask with a secret; without one with the secret that `secret_for` finds."""
        self.address = address or DEFAULT_ADDRESS
        found = secret_for(self.address) if secret is None else secret
        self._http = httpx.Client(
            base_url=self.address,
            timeout=SECONDS,
            trust_env=False,
            verify=_trusted(self.address),
            headers={"Authorization": f"Bearer {found}"} if found else {},
        )

    def get(self, path: str, **parameters: str) -> Any:
        """Return the JSON answer of a GET request."""
        return self._answer("GET", path, params=parameters)

    def post(self, path: str, body: Object, *, seconds: float = SECONDS) -> Any:
        """Return the JSON answer of a POST request.

        Args:
            path: Below the console's address.
            body: A JSON object.
            seconds: How long to wait for the answer.
        """
        return self._answer("POST", path, json=body, timeout=seconds)

    def patch(self, path: str, body: Any) -> Any:
        """Return the JSON answer of a PATCH request."""
        return self._answer("PATCH", path, json=body)

    def delete(self, path: str) -> Any:
        """Return the JSON answer of a DELETE request."""
        return self._answer("DELETE", path)

    def events(self, path: str) -> Iterator[tuple[str, Any]]:
        """Yield (event, value) of a server-sent event stream; ("", None) for a heartbeat.

        Raises:
            FederationError: The console is not there, refuses, or goes away.
        """
        timeout = httpx.Timeout(10.0, read=30.0)
        try:
            with self._http.stream("GET", path, timeout=timeout) as response:
                if response.is_error:
                    response.read()
                    raise _error_of(response)
                yield from _parse_events(response.iter_lines())
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error

    def close(self) -> None:
        """Close connections."""
        self._http.close()

    def _answer(self, method: str, path: str, **arguments: Any) -> Any:
        try:
            response = self._http.request(method, path, **arguments)
        except httpx.HTTPError as error:
            raise self._unreachable(error) from error
        if response.is_error:
            raise _error_of(response)
        return response.json()

    def _unreachable(self, error: httpx.HTTPError) -> DeploymentError:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return DeploymentError(
                f"the console at {self.address} is not trusted: {error}",
                hint="give the authority of its certificate: pando --ca FILE …, or PANDO_CA",
            )
        return DeploymentError(
            f"no console answers at {self.address} ({type(error).__name__}: {error})",
            hint="start one with `pando up`, or name another with --console URL",
        )


def _trusted(address: str) -> ssl.SSLContext | bool:
    """Return what the console's certificate is checked with, and what is shown to it.

    Raises:
        DeploymentError: Files that PANDO_CA, PANDO_CERT and PANDO_KEY name cannot be used.
    """
    if not address.startswith("https://"):
        return True
    from host.mqtt.broker_address import tls_context  # noqa: PLC0415  (keeps `pando --help` quick)

    ca, cert, key = (os.environ.get(name, "") for name in ("PANDO_CA", "PANDO_CERT", "PANDO_KEY"))
    try:
        return tls_context(
            Path(ca) if ca else authority_at(address),
            Path(cert) if cert else None,
            Path(key) if key else None,
        )
    except ValueError as error:
        raise DeploymentError(str(error), hint="PANDO_CA, PANDO_CERT and PANDO_KEY") from error


def _parse_events(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    event, data = "", ""
    for line in lines:
        if line.startswith("event: "):
            event = line[7:]
        elif line.startswith("data: "):
            data += line[6:]
        elif line.startswith(":"):
            yield "", None
        elif not line and data:
            yield event, json.loads(data)
            event, data = "", ""


def _error_of(response: httpx.Response) -> FederationError:
    error = _error_told(response)
    with contextlib.suppress(ValueError, KeyError, TypeError):
        error.carried_out = tuple(map(str, response.json()["error"]["carried_out"]))
    return error


def _error_told(response: httpx.Response) -> FederationError:
    try:
        problem = response.json()["error"]
        message, hint = str(problem["message"]), str(problem.get("hint") or "")
        code = str(problem.get("code") or "")
    except (ValueError, KeyError, TypeError):
        return FederationError(f"the console answered {response.status_code}: {response.text:.300}")
    if problem.get("line"):
        span = Span(problem["line"], problem["column"], problem.get("text") or "")
        return BindingError(message, span=span, hint=hint, code=code)
    if response.status_code >= 500:
        return ServerError(message, hint=hint)
    return DeploymentError(message, hint=hint, code=code)


class ServerError(FederationError):
    """The console failed; not the user's fault."""

    code = "server_error"
