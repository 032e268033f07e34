"""Start all services, watch them, and end them in a clean, explained state."""

import asyncio
import contextlib
import fcntl
import json
import signal
import sys
import time
from collections.abc import AsyncIterator
from typing import IO, Any
from urllib.parse import urlsplit

import httpx

from deploy.local import configure
from deploy.local.events import Reporter
from deploy.local.layout import Layout, last_console_file
from deploy.local.options import UpOptions
from deploy.local.ports import HOST, free_port, require_free
from deploy.local.recordings import Recording, inspect
from deploy.local.service import Service, ServiceSpec, exit_text
from gateway.broker.launch import Preference, broker_command
from gateway.settings import ClockSettings
from streamsql.errors import DeploymentError, FederationError

START_SECONDS = 60.0
POLL_SECONDS = 0.1
VITAL = ("broker", "base", "console")


class _ServiceDied(Exception):  # noqa: N818  (an event, not an error of this program)
    def __init__(self, service: Service, status: int) -> None:
        super().__init__(service.spec.name)
        self.service = service
        self.status = status


class Federation:
    """All services of one `pando up`."""

    def __init__(self, options: UpOptions, reporter: Reporter) -> None:
        self.options = options
        self.reporter = reporter
        self.layout = Layout(options.data.resolve())
        self.address = f"http://{HOST}:{options.port}"
        self.services: dict[str, Service] = {}
        self._watchers: set[asyncio.Task[None]] = set()
        self._died: asyncio.Queue[tuple[Service, int]] = asyncio.Queue()
        self._lock: IO[str] | None = None
        self._gateways = [f"gw-{n}" for n in range(1, options.gateways + 1)]

    async def run(self) -> int:
        """Run until a signal or the death of a vital service; return the exit status.

        Raises:
            DeploymentError: It cannot start; what was started is stopped again.
        """
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, stop.set)
        try:
            require_free(self.options.port, "--port")
            self._take_lock()
            stopped = asyncio.create_task(stop.wait())
            for job in (self._start, self._serve):
                task = asyncio.create_task(job())
                await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
                if stopped.done():
                    task.cancel()
                    with contextlib.suppress(asyncio.CancelledError, _ServiceDied):
                        await task
                    self.reporter.event("stopping", "stopping on request")
                    return 0
                await task
        except _ServiceDied as death:
            self._explain(death)
            return 1
        finally:
            await self._stop_all()
        return 0

    # Starting ---------------------------------------------------------------------------------

    def _take_lock(self) -> None:
        try:
            self.layout.root.mkdir(parents=True, exist_ok=True)
            self._lock = self.layout.lock.open("a+", encoding="ascii")
        except OSError as error:
            raise DeploymentError(
                f"cannot use data directory {self.layout.root}: {error.strerror}",
                hint="choose another one with --data",
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise DeploymentError(
                f"another federation runs on data directory {self.layout.root}",
                hint="stop it, or choose another directory with --data",
            ) from None

    async def _start(self) -> None:
        """Bring everything up; returns once the federation can be used."""
        options, layout = self.options, self.layout
        self.reporter.event("preparing", "preparing the site")
        recording = inspect(options.replay) if options.replay is not None else None
        site = await asyncio.to_thread(configure.read_site, options, recording)
        script = configure.write_site(site, layout, recording, options.gateways)
        broker = await self._start_broker()
        clock = self._clock(recording)
        for number in range(1, options.gateways + 1):
            settings = configure.gateway_settings(
                number,
                options=options,
                layout=layout,
                broker=broker,
                script=script,
                recording=recording,
                clock=clock,
            )
            await self._start_python(settings.gateway, "gateway", settings)
        base = configure.base_settings(layout, broker, clock)
        await self._start_python("console", "ui", self._console_settings(broker, recording))
        await self._start_python("base", "gateway", base)
        await self._until_console_answers()
        self._write_address()
        await self._start_python("static", "static_engine", self._static_settings(broker), nice=5)
        await self._until_gateways_are_online()
        self._write_processes()
        self.reporter.ready(self.address, services=self._pids())

    async def _start_broker(self) -> str:
        given = self.options.broker
        preferences: dict[str | None, Preference] = {
            None: "auto",
            "embedded": "embedded",
            "mosquitto": "mosquitto",
        }
        if given is not None and given not in preferences:
            await _require_reachable(given)
            return given
        port = free_port()
        command = broker_command(port, self.layout.data("broker"), preferences[given])
        kind = "embedded broker" if "-m" in command else "mosquitto"
        self.reporter.event("starting", f"starting {kind} on port {port}", service="broker")
        await self._start_service(ServiceSpec("broker", tuple(command)))
        await self._until(lambda: _accepts(port), "broker", "accept connections")
        return f"mqtt://{HOST}:{port}"

    async def _start_python(self, name: str, package: str, settings: object, nice: int = 0) -> None:
        path = configure.write_settings(self.layout, name, settings)
        self.reporter.event("starting", f"starting {name}", service=name)
        command = (sys.executable, "-m", package, "--config", str(path))
        await self._start_service(ServiceSpec(name, command, name in VITAL, nice))

    async def _start_service(self, spec: ServiceSpec) -> None:
        service = Service(spec, self.reporter.log)
        self.services[spec.name] = service
        await service.start()
        self._watch(service)

    def _watch(self, service: Service) -> None:
        async def watch() -> None:
            status = await service.wait()
            if not service.stopping:
                self._died.put_nowait((service, status))

        task = asyncio.create_task(watch())
        self._watchers.add(task)
        task.add_done_callback(self._watchers.discard)

    def _clock(self, recording: Recording | None) -> ClockSettings:
        if recording is None:
            return ClockSettings()
        return ClockSettings(self.options.speed, time.time_ns() // 1000, recording.begins)

    def _console_settings(self, broker: str, recording: Recording | None) -> dict[str, Any]:
        site_file = self.layout.site / "site.geojson"
        return {
            "host": HOST,
            "port": self.options.port,
            "site": configure.FEDERATION,
            "broker": broker,
            "data_dir": str(self.layout.data("console")),
            "catalog_url": self.options.database or "",
            "site_file": str(site_file) if site_file.exists() else "",
            "schema_file": str(self.layout.schema),
            "layers": "trace" if recording is not None else "building",
        }

    def _static_settings(self, broker: str) -> dict[str, Any]:
        return {
            "broker": broker,
            "site": configure.FEDERATION,
            "data_dir": str(self.layout.data("static")),
            "base_dir": str(self.layout.tables),
            "use_spark": self.options.spark,
            "allow_absolute_paths": True,
        }

    async def _until_console_answers(self) -> None:
        async with httpx.AsyncClient(timeout=2.0, trust_env=False) as client:

            async def answers() -> bool:
                with contextlib.suppress(httpx.HTTPError):
                    return (await client.get(f"{self.address}/api/health")).is_success
                return False

            await self._until(answers, "console", "answer")

    async def _until_gateways_are_online(self) -> None:
        wanted = {*self._gateways, "base"}
        async with httpx.AsyncClient(timeout=2.0, trust_env=False) as client:

            async def online() -> bool:
                with contextlib.suppress(httpx.HTTPError, ValueError, KeyError, TypeError):
                    sites = (await client.get(f"{self.address}/api/sites")).json()
                    return wanted <= {s["site"] for s in sites if s["online"]}
                return False

            await self._until(online, "gateways", "come online")

    async def _until(self, condition: Any, name: str, what: str) -> None:
        """Wait for an async condition.

        Raises:
            DeploymentError: It does not come true within a minute.
            _ServiceDied: A service ended meanwhile.
        """
        deadline = time.monotonic() + START_SECONDS
        while not await condition():
            if not self._died.empty():
                raise _ServiceDied(*self._died.get_nowait())
            if time.monotonic() > deadline:
                raise DeploymentError(
                    f"{name} did not {what} within {START_SECONDS:.0f} s",
                    hint="its log above may say why; try pando doctor",
                )
            await asyncio.sleep(POLL_SECONDS)

    # Running ----------------------------------------------------------------------------------

    async def _serve(self) -> None:
        """Watch the services until a vital one dies."""
        self.layout.restart_requests.mkdir(parents=True, exist_ok=True)
        async for service, status in self._deaths():
            if service.spec.vital:
                raise _ServiceDied(service, status)
            self._tell_death(service, status)

    async def _deaths(self) -> AsyncIterator[tuple[Service, int]]:
        while True:
            with contextlib.suppress(TimeoutError):
                yield await asyncio.wait_for(self._died.get(), 0.3)
            await self._answer_restart_requests()

    def _tell_death(self, service: Service, status: int) -> None:
        name = service.spec.name
        consequence = (
            "static tables are not refreshed until it is back"
            if name == "static"
            else "after the grace time its rooms are stale and its rows leave every answer"
        )
        self.reporter.event(
            "died",
            f"{name} (pid {service.pid}) {exit_text(status)}; {consequence}. "
            f"Start it again with: pando gateway restart {name}",
            service=name,
            pid=service.pid,
            status=status,
            last_lines=service.last_lines[-3:],
        )
        self._write_processes()

    async def _answer_restart_requests(self) -> None:
        requests = self.layout.restart_requests
        for request in sorted(requests.iterdir()) if requests.is_dir() else ():
            with contextlib.suppress(FileNotFoundError):
                request.unlink()
            service = self.services.get(request.name)
            if service is None:
                self.reporter.event("error", f"asked to restart {request.name!r}: no such service")
                continue
            await service.stop()
            await service.start()
            self._watch(service)
            self._write_processes()
            self.reporter.event(
                "restarted",
                f"{request.name} started again (pid {service.pid})",
                service=request.name,
                pid=service.pid,
            )

    def _pids(self) -> dict[str, int]:
        return {name: service.pid for name, service in self.services.items()}

    def _write_processes(self) -> None:
        facts = {
            name: {"pid": service.pid, "command": list(service.spec.command)}
            for name, service in self.services.items()
        }
        configure.write_file(self.layout.processes, json.dumps(facts, indent=2).encode())

    def _write_address(self) -> None:
        content = json.dumps({"console": self.address, "data": str(self.layout.root)}).encode()
        configure.write_file(self.layout.console, content)
        with contextlib.suppress(DeploymentError):
            configure.write_file(last_console_file(), content)

    # Ending -----------------------------------------------------------------------------------

    def _explain(self, death: _ServiceDied) -> None:
        name = death.service.spec.name
        self.reporter.event(
            "died",
            f"{name} {exit_text(death.status)}; the federation cannot go on without it. "
            "Everything is being stopped; its log above says why. "
            "`pando up` starts it again with all queries.",
            service=name,
            status=death.status,
            last_lines=death.service.last_lines[-5:],
        )

    async def _stop_all(self) -> None:
        """Stop the services, the broker last, and give the data directory free."""
        others = [s for name, s in self.services.items() if name != "broker"]
        await asyncio.gather(*(service.stop() for service in others))
        if "broker" in self.services:
            await self.services["broker"].stop()
        with contextlib.suppress(OSError):
            self.layout.processes.unlink()
        for path in (self.layout.console, last_console_file()):
            with contextlib.suppress(OSError, ValueError):
                if json.loads(path.read_text())["console"] == self.address:
                    path.unlink()
        if self._lock is not None:
            self._lock.close()
        if self.services:
            self.reporter.event("stopped", "everything is stopped")


async def _accepts(port: int) -> bool:
    with contextlib.suppress(OSError):
        _, writer = await asyncio.open_connection(HOST, port)
        writer.close()
        await writer.wait_closed()
        return True
    return False


async def _require_reachable(url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("mqtt", "mqtts") or not parts.hostname:
        raise DeploymentError(f"--broker {url!r}: no broker address", hint="write mqtt://host:1883")
    port = parts.port or (8883 if parts.scheme == "mqtts" else 1883)
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(parts.hostname, port), 5.0)
    except (OSError, TimeoutError) as error:
        raise DeploymentError(
            f"no broker answers at {parts.hostname}:{port} ({error})",
            hint="start it first, or leave --broker away to get one of our own",
        ) from error
    writer.close()


async def up(options: UpOptions, reporter: Reporter) -> int:
    """Run a federation; return the process's exit status."""
    try:
        return await Federation(options, reporter).run()
    except FederationError as error:
        reporter.event("error", str(error), code=error.code)
        sys.stderr.write(f"error: {error}\n") if reporter.json else None
        return 2
