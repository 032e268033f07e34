"""`python -m ui --config FILE`: coordinator and console in one process.

`python -m deploy.console` starts the same with an engine that explains rows.
"""

import asyncio
import contextlib
import functools
import gc
import os
import signal
import socket
import ssl
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import uvicorn
from typing_extensions import override

from federated_optimizer.coordinator.contract.coordinator_api import CoordinatorApi
from federated_optimizer.coordinator.contract.coordinator_settings import CoordinatorSettings
from federated_optimizer.coordinator.contract.sink_endpoints import sink_endpoints
from federated_optimizer.coordinator.coordinator_service import open_coordinator
from federated_optimizer.coordinator.explaining.row_explainer import RowExplainer
from federated_optimizer.coordinator.people.admissions import SessionLimits
from federated_optimizer.coordinator.people.people_service import People
from federated_optimizer.coordinator.people.people_store import PeopleStore
from federated_optimizer.coordinator.people.random_secrets import session_secret
from federated_optimizer.coordinator.planning_processes import InProcesses
from federated_optimizer.coordinator.trials.history_runner import HistoryRunner
from host.clocks import wall_clock
from host.files.atomic_file import PRIVATE, replace_file
from host.metrics.status_server import serving_status
from host.mqtt import MessageClient, Will, open_service_client
from host.service_process import read_command_line
from streamsql.algebra.user_functions import INSTALLED, modules_of
from streamsql.errors import DeploymentError, FederationError
from ui.api.federation_figures import federation_figures
from ui.app import create_app
from ui.apply_schema import apply_schema
from ui.connections import ConnectionLimits, bounded
from ui.console_settings import ConsoleSettings, load_settings
from ui.sign_in.exposure import check_exposure, proxies
from ui.tls_handshakes import over_tls

OpenHistory = Callable[[ConsoleSettings], HistoryRunner | None]
CLIENT_ID = "coordinator"
KEEPALIVE = 5
HANDSHAKE_SECONDS = 5.0
"""Within which a client has to set up TLS."""
COLLECTIONS = (20_000, 3, 33)
"""Thresholds of the garbage collector: all that thousands of queries keep is walked rarely.

A query makes some 600 objects that stay, so a look at all of them comes once in 3,000 queries. What
is new is looked at in parts of 20 ms: ten times 20,000 objects would keep the loop for 80.
"""
VANISHED_MILLISECONDS = 60_000
"""For which what was sent to a client may stay unacknowledged."""


def _coordinator_settings(settings: ConsoleSettings) -> CoordinatorSettings:
    data = Path(settings.data_dir)
    try:
        data.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DeploymentError(f"cannot use data directory {data}: {error.strerror}") from error
    return CoordinatorSettings(
        site=settings.site,
        database=settings.database,
        grace=settings.grace_seconds,
        adapt=settings.adapt_seconds,
        time_zone=settings.time_zone,
        metric=settings.plan_metric,
        heuristics=settings.heuristics,
        sharing=settings.sharing,
        materialize=settings.materialize,
        base_gateway=settings.base_gateway,
        folders=settings.folders,
        endpoints=sink_endpoints(settings.endpoints),
        fleet=settings.fleet,
        **_bases(settings),
    )


def _bases(settings: ConsoleSettings) -> dict[str, Any]:
    if not settings.base_sites:
        return {}
    return {"bases": settings.base_sites, "only_bases": True}


def _script(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise DeploymentError(f"cannot read schema {path}: {error.strerror}") from error


def _tls(settings: ConsoleSettings) -> ssl.SSLContext | None:
    """Return the console's certificate and key as a context of TLS; None for HTTP.

    Raises:
        DeploymentError: They cannot, or a key is there without a certificate.
    """
    if not settings.tls_cert:
        if settings.tls_key:
            raise DeploymentError("setting tls_key needs its certificate: set tls_cert")
        return None
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(settings.tls_cert, settings.tls_key or None, password=_no_password)
    except (OSError, ssl.SSLError, ValueError) as error:
        why = (isinstance(error, OSError) and error.strerror) or str(error)
        raise DeploymentError(
            f"the console cannot use tls_cert {settings.tls_cert} and tls_key "
            f"{settings.tls_key or settings.tls_cert}: {why}",
            hint="both are files in PEM form, the key without a passphrase; make them with "
            "`pando ca issue`",
        ) from error
    return context


def _no_password() -> str:
    raise ValueError("the key has a passphrase")


def _listen(settings: ConsoleSettings) -> socket.socket:
    """Return a listening socket, so that a busy port is known before anything starts.

    Raises:
        DeploymentError: The port is in use or may not be used.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, proto=socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Its connections inherit this. Without it the second of two small writes, such as a response's
    # body after its head, or one event after another, waits until the first is acknowledged: 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # Connections of machines that vanished end, though nobody says so.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, VANISHED_MILLISECONDS)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise DeploymentError(
            f"cannot listen on {settings.host} port {settings.port}: {error.strerror}",
            hint="choose another port",
        ) from error
    return listener


class _Server(uvicorn.Server):
    """A server that tells event streams to end before it waits for its connections."""

    def __init__(self, config: uvicorn.Config, closing: asyncio.Event) -> None:
        super().__init__(config)
        self._closing = closing

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on SIGINT and SIGTERM without dying of them, so that the coordinator closes too."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen; with TLS a client has to shake hands soon."""
        loop = asyncio.get_running_loop()
        plain = loop.create_server
        if self.config.is_ssl:
            # uvicorn gives no time, and asyncio's own is a minute: connections that say nothing
            # are counted by nobody before they have shaken hands.
            timed = functools.partial(plain, ssl_handshake_timeout=HANDSHAKE_SECONDS)
            loop.create_server = timed  # type: ignore[method-assign]
        try:
            await super().startup(sockets)
        finally:
            loop.create_server = plain  # type: ignore[method-assign]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop serving."""
        self._closing.set()
        await super().shutdown(sockets)


async def serve(
    settings: ConsoleSettings,
    explainer: RowExplainer | None = None,
    open_history: OpenHistory | None = None,
    *,
    config: Path | None = None,
) -> None:
    """Run coordinator and console until a signal.

    Args:
        settings: See `ConsoleSettings`.
        explainer: The engine that answers questions about rows.
        open_history: Returns the engine that runs queries on the past, if there is a lake.
        config: File of the settings, for messages.
    """
    context = _tls(settings)
    stored = _coordinator_settings(settings)
    trusted = proxies(settings.trusted_proxy)
    async with contextlib.AsyncExitStack() as opened:
        store = await asyncio.to_thread(PeopleStore, stored.database)
        opened.push_async_callback(asyncio.to_thread, store.close)
        check_exposure(
            settings.host,
            trusted,
            has_accounts=await asyncio.to_thread(store.has_accounts),
            has_tls=context is not None,
            config=config,
        )
        listener = opened.enter_context(_listen(settings))

        def client(will: Will) -> MessageClient:
            # Sinks must know which of their topics the broker's access list forbids.
            return open_service_client(
                settings, CLIENT_ID, will, keepalive=KEEPALIVE, prefers_5=True
            )

        history = None if open_history is None else open_history(settings)
        beside = InProcesses(settings.statement_seconds)
        coordinator = await open_coordinator(stored, client, wall_clock, explainer, beside, history)
        opened.push_async_callback(coordinator.close)
        people = await _open_people(store, coordinator, settings)
        opened.push_async_callback(people.close)
        coordinator.follow_accounts(people.account)
        if settings.schema_file:
            await apply_schema(coordinator, _script(Path(settings.schema_file)))
        app = create_app(coordinator, settings, people)
        limits = ConnectionLimits(
            settings.max_connections,
            settings.max_connections_per_address,
            settings.request_seconds,
            proxies=trusted,
        )
        server = uvicorn.Config(
            app,
            http=bounded(limits) if context is None else over_tls(bounded(limits), context),
            ws="none",  # there are no web sockets, and their protocol would have no bounds
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=2,
            # Whoever else says that it speaks for another address is not believed.
            proxy_headers=bool(trusted),
            forwarded_allow_ips=list(trusted),
        )
        async with serving_status(
            settings.metrics_host,
            settings.metrics_port,
            lambda: federation_figures(coordinator),
            coordinator.figures.problem,
        ):
            await _Server(server, app.state.closing).serve(sockets=[listener])


async def _open_people(
    store: PeopleStore, coordinator: CoordinatorApi, settings: ConsoleSettings
) -> People:
    limits = SessionLimits(settings.session_idle_hours, settings.session_hours)
    owner = session_secret()
    people = People(store, wall_clock, coordinator.audit, limits=limits, owner=owner)
    await people.begin()
    try:
        replace_file(settings.owner_file, f"{owner}\n".encode(), mode=PRIVATE)
    except OSError as error:
        raise DeploymentError(f"cannot write {settings.owner_file}: {error.strerror}") from error
    return people


def main(
    explainer: RowExplainer | None = None,
    open_history: OpenHistory | None = None,
    *,
    program: str = "ui",
) -> int:
    """Return the exit status: 0 stopped, 2 something the operator can fix.

    Args:
        explainer: The engine that answers questions about rows; without it they are refused.
        open_history: Returns the engine that runs queries on the past; likewise.
        program: Module that was started, for the help text.
    """
    config = read_command_line(program, __doc__, "JSON settings file")
    gc.freeze()  # what imports have made lives for ever: no collection need walk it again
    gc.set_threshold(*COLLECTIONS)
    os.umask(0o077)  # what is written here, the catalog first, is for nobody else
    try:
        settings = load_settings(config)
        INSTALLED.allow(modules_of(settings.functions))
        asyncio.run(serve(settings, explainer, open_history, config=config))
    except FederationError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
