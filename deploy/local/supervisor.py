"""Start all services, watch them, and stop them; say why they end."""

import asyncio
import contextlib
import json
import signal
import sys
import time
from collections.abc import Awaitable, Callable

import httpx

from broker.broker_launch import Preference, broker_command
from broker.free_ports import HOST, free_port
from building.files.site_files import write_atomically
from deploy.local import configure
from deploy.local.claim import Claim, end_leftovers, leftovers
from deploy.local.layout import Layout
from deploy.local.probes import (
    accepts,
    console_answers,
    require_free,
    require_reachable,
    sites_online,
)
from deploy.local.recordings import Recording, inspect
from deploy.local.restart_requests import answer_requests, discard_requests
from deploy.local.restarts import Restarts
from deploy.local.secured_broker import BrokerPlace, console_trust, reached_at, secured_broker
from deploy.local.service_logs import ServiceLogs
from deploy.local.service_processes import BROKER, LANDER, Death, Services, ServiceSpec
from deploy.local.up_options import UpOptions
from deploy.local.up_reports import Reporter
from gateway.gateway_settings import ClockSettings
from host.clocks import wall_clock
from host.files.atomic_file import PRIVATE
from streamsql.errors import DeploymentError, FederationError, InternalError
from ui.cli.federations import LocalFederation, entry_of, owner_secret

START_SECONDS = 120.0
LEFTOVER_SECONDS = 10.0
POLL_SECONDS = 0.1
REQUEST_SECONDS = 0.3
VITAL = (BROKER, "base", "console")
BROKERS: dict[str | None, Preference] = {
    None: "auto",
    "embedded": "embedded",
    "mosquitto": "mosquitto",
}


_CONSEQUENCE = "after the grace time its rooms are stale and its rows leave every result"
_CONSEQUENCES = {
    BROKER: "until it runs again nothing is sent; gateways keep their readings",
    "base": "results that it computes are degraded until it is back",
    "console": "pages and commands are not answered; queries run on at the sites",
    "static": "static tables are not refreshed until it restarts",
    LANDER: "nothing is added to the lake until it restarts; the broker keeps it until then",
}


class _VitalDeathError(Exception):
    """A service died without which the federation cannot start or go on."""

    def __init__(self, death: Death) -> None:
        super().__init__(str(death))
        self.death = death


class Federation:
    """All services of one `pando up`."""

    def __init__(self, options: UpOptions, reporter: Reporter) -> None:
        self.options = options
        self.reporter = reporter
        self.layout = Layout(options.data.resolve())
        self.address = f"http://{HOST}:{options.port}"
        if options.console_host:
            self.address = f"https://{reached_at(options.console_host)}:{options.port}"
        self.logs = ServiceLogs(self.layout.logs)
        self.services = Services(self._log)
        self._restarts = Restarts()
        self._claim = Claim(self.layout.lock)
        self._gateways = [f"gw-{n}" for n in range(1, options.gateways + 1)]

    async def run(self) -> int:
        """Run until a signal or the death of a vital service; return the exit status.

        Raises:
            DeploymentError: It cannot start; what was started is stopped again.
        """
        stop = asyncio.Event()
        _on_signals(stop.set)
        stopped = asyncio.create_task(stop.wait())
        try:
            self._claim.take()
            for job in (self._start, self._serve):
                task = asyncio.create_task(job())
                await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
                if stopped.done():
                    self.reporter.event("stopping", "stopping on request")
                    task.cancel()
                    with contextlib.suppress(asyncio.CancelledError, _VitalDeathError):
                        await task
                    return 0
                await task
        except _VitalDeathError as end:
            self._explain(end.death)
            return 1
        finally:
            await self._stop_all()
            stopped.cancel()
        return 0

    # Starting ---------------------------------------------------------------------------------

    async def _start(self) -> None:
        """Bring everything up; returns once the federation can be used."""
        await self._end_leftovers()
        require_free(self.options.port, "--port")
        await asyncio.to_thread(self.layout.keep_private)
        options, layout = self.options, self.layout
        self.reporter.event("preparing", "preparing the site")
        recording = await asyncio.to_thread(inspect, options.replay) if options.replay else None
        site = await asyncio.to_thread(configure.read_site, options, recording)
        _script, warnings = await asyncio.to_thread(
            configure.write_site, site, layout, recording, options.gateways
        )
        for warning in warnings:
            self.reporter.event("warning", f"map: {warning}")
        place = await self._start_broker()
        broker = place.address
        clock = self._clock(recording)
        if options.spark:  # first: what gateways publish is landed from the beginning
            lander = configure.lander_settings(layout, broker, options)
            await self._start_python(
                LANDER, "static_engine.landing", place.given_to(lander, LANDER)
            )
        for number, name in enumerate(self._gateways, start=1):
            settings = configure.gateway_settings(
                number,
                options=options,
                layout=layout,
                broker=broker,
                recording=recording,
                clock=clock,
            )
            await self._start_python(name, "gateway", place.given_to(settings, name))
        console = configure.console_settings(layout, broker, options, recording)
        console = await asyncio.to_thread(place.given_to_console, console, options)
        await self._start_python("console", "deploy.console", console)
        base = configure.base_settings(layout, broker, clock, options.metrics_port_of("base"))
        await self._start_python("base", "gateway", place.given_to(base, "base"))
        await self._until_console_answers()
        self._write_address()
        static = configure.static_settings(layout, broker, options)
        static = place.given_to(static, "static")
        await self._start_python("static", "static_engine", static, nice=5)
        await self._until_gateways_are_online()
        self.reporter.ready(self.address, services=self.services.pids())

    async def _end_leftovers(self) -> None:
        """Let a killed federation's services end; they hold the port and the data."""
        left = leftovers(self.layout.processes)
        if left:
            message = f"waiting for {len(left)} services of a federation that was killed"
            self.reporter.event("waiting", message)
            await asyncio.to_thread(end_leftovers, left, LEFTOVER_SECONDS)

    async def _start_broker(self) -> BrokerPlace:
        """Return the broker's place, after starting one unless it was given."""
        given = self.options.broker
        if given is not None and given not in BROKERS:
            await require_reachable(given)
            return BrokerPlace(given)
        listen, port = self.options.broker_place
        port = port or free_port()
        security = None
        if self.options.secure:
            security = await asyncio.to_thread(secured_broker, self.layout, self._gateways, listen)
        command = broker_command(port, self.layout.data(BROKER), BROKERS[given], security)
        kind = "embedded broker" if "-m" in command else "mosquitto"
        self.reporter.event("starting", f"starting {kind} on port {port}", service=BROKER)
        await self._start_service(ServiceSpec(BROKER, tuple(command)))
        host = reached_at(listen)
        await self._until(lambda: accepts(port, host), BROKER, "accept connections")
        if security is None:
            return BrokerPlace(f"mqtt://{host}:{port}")
        return BrokerPlace(f"mqtts://{host}:{port}", self.layout)

    async def _start_python(self, name: str, package: str, settings: object, nice: int = 0) -> None:
        path = configure.write_settings(self.layout, name, settings)
        self.reporter.event("starting", f"starting {name}", service=name)
        command = (sys.executable, "-m", package, "--config", str(path))
        secrets = package == "static_engine"  # it alone connects to databases of tables
        spec = ServiceSpec(name, command, name in VITAL, nice, secrets=secrets)
        await self._start_service(spec)

    async def _start_service(self, spec: ServiceSpec) -> None:
        await self.services.start(spec)
        self._write_processes()

    def _clock(self, recording: Recording | None) -> ClockSettings:
        if recording is None:
            return ClockSettings()
        return ClockSettings(self.options.speed, wall_clock(), recording.begins)

    async def _until_console_answers(self) -> None:
        async with self._http() as client:
            await self._until(lambda: console_answers(client), "the console", "answer")

    async def _until_gateways_are_online(self) -> None:
        missing = {*self._gateways, "base"}
        async with self._http() as client:

            async def all_online() -> bool:
                for site in sorted(missing & await sites_online(client)):
                    missing.discard(site)
                    self.reporter.event("online", f"{site} is online", service=site)
                return not missing

            await self._until(all_online, "the sites", "come online")

    def _http(self) -> httpx.AsyncClient:
        owner = owner_secret(self.layout.root)
        headers = {"Authorization": f"Bearer {owner}"} if owner else {}
        return httpx.AsyncClient(
            base_url=self.address,
            timeout=2.0,
            trust_env=False,
            headers=headers,
            verify=console_trust(self.layout) if self.options.console_host else True,
        )

    async def _until(self, condition: Callable[[], Awaitable[bool]], who: str, what: str) -> None:
        """Wait for a condition.

        Raises:
            InternalError: It does not come true in two minutes.
            _VitalDeathError: A service without which we cannot start ended meanwhile.
        """
        deadline = time.monotonic() + START_SECONDS
        while not await condition():
            death = self.services.death()
            if death is not None and death.name in {"static", LANDER}:
                self._report_death(death, self._pause_after(death))
            elif death is not None:
                raise _VitalDeathError(death)
            if time.monotonic() > deadline:
                raise InternalError(
                    f"{who} did not {what} within {START_SECONDS:.0f} s",
                    hint="the log above may say why; try pando doctor",
                )
            await asyncio.sleep(POLL_SECONDS)

    # Running ----------------------------------------------------------------------------------

    async def _serve(self) -> None:
        """Watch the services until a vital one dies, or nobody reads our output any more."""
        while not self.reporter.gone:
            death = await self.services.next_death(REQUEST_SECONDS)
            if death is not None:
                pause = self._pause_after(death)
                if pause is None and death.service.spec.vital:
                    raise _VitalDeathError(death)
                self._report_death(death, pause)
            await answer_requests(
                self.layout, self.services, self.reporter, self._write_processes, self._restarts
            )
            await self._restart_the_dead()

    def _pause_after(self, death: Death) -> float | None:
        return self._restarts.pause_after(death) if self.options.restart else None

    async def _restart_the_dead(self) -> None:
        for name in self._restarts.due():
            if self.services.runs(name):
                continue
            service = await self.services.restart(name)
            self._write_processes()
            message = f"{name} started again after its death (pid {service.pid})"
            self.reporter.event("restarted", message, service=name, pid=service.pid)

    def _log(self, service: str, line: str) -> None:
        self.logs.write(service, line)
        self.reporter.log(service, line)

    def _report_death(self, death: Death, pause: float | None) -> None:
        """Say what follows from a death; `pause` is the time until the restart, None for none."""
        consequence = _CONSEQUENCES.get(death.name, _CONSEQUENCE)
        if pause is None:
            what = f"Start it again with: pando gateway restart {death.name}"
        else:
            what = f"It is started again in {pause:g} s"
        self.reporter.event(
            "died",
            f"{death}; {consequence}. {what}",
            service=death.name,
            pid=death.service.pid,
            status=death.status,
            last_lines=death.service.last_lines[-3:],
        )

    def _write_processes(self) -> None:
        content = json.dumps(self.services.facts(), indent=2)
        write_atomically(self.layout.processes, content.encode(), PRIVATE)

    def _write_address(self) -> None:
        content = LocalFederation(self.address, self.layout.root).as_json()
        write_atomically(self.layout.console, content)
        with contextlib.suppress(DeploymentError):  # only a convenience for other folders
            write_atomically(entry_of(self.layout.root), content)

    # Ending -----------------------------------------------------------------------------------

    def _explain(self, death: Death) -> None:
        again = "`pando up` restarts it with all queries."
        reason = f"{death}; the federation cannot run without it. Stopping all services."
        lines = death.service.last_lines[-5:]
        self.reporter.event(
            "died", f"{reason} {again}", service=death.name, status=death.status, last_lines=lines
        )
        said = "".join(f"\n  {line}" for line in lines)
        self.reporter.error(f"{death}" + (f"; its last output:{said}" if said else ""))

    async def _stop_all(self) -> None:
        """Stop the services and release the data directory, if it is ours."""
        await self.services.stop()
        self.logs.close()
        if not self._claim.held:
            return
        discard_requests(self.layout)
        self.layout.processes.unlink(missing_ok=True)
        for path in (self.layout.console, entry_of(self.layout.root)):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        self._claim.release()
        if self.services:
            self.reporter.event("stopped", "all services are stopped")


def _on_signals(stop: Callable[[], None]) -> None:
    """End orderly on SIGINT, SIGTERM and, unless started with nohup, SIGHUP."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            loop.add_signal_handler(number, stop)


async def up(options: UpOptions, reporter: Reporter) -> int:
    """Run a federation; return the process's exit status."""
    try:
        return await Federation(options, reporter).run()
    except InternalError as error:
        reporter.error(f"(a defect of Pando) {error}", code=error.code)
        return 1
    except FederationError as error:
        reporter.error(str(error), code=error.code)
        return 2
