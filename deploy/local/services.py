"""All service processes of one federation: started, watched, started again, stopped."""

import asyncio
from dataclasses import dataclass
from typing import Any

from deploy.local.service import Log, Service, ServiceSpec, exit_text

BROKER = "broker"


@dataclass(frozen=True, slots=True)
class Death:
    """A service ended although nobody asked it to."""

    service: Service
    status: int

    @property
    def name(self) -> str:
        """Name of the service."""
        return self.service.spec.name

    def __str__(self) -> str:
        """Return what happened, in words."""
        return f"{self.name} (pid {self.service.pid}) {exit_text(self.status)}"


class Services:
    """Services by name, in the order they were started."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._by_name: dict[str, Service] = {}
        self._watchers: set[asyncio.Task[None]] = set()
        self._deaths: asyncio.Queue[Death] = asyncio.Queue()

    def __bool__(self) -> bool:
        """Whether any service was started."""
        return bool(self._by_name)

    def __contains__(self, name: str) -> bool:
        """Whether there is a service of that name."""
        return name in self._by_name

    async def start(self, spec: ServiceSpec) -> Service:
        """Start a service and watch it."""
        service = self._by_name[spec.name] = Service(spec, self._log)
        await service.start()
        self._watch(service)
        return service

    async def restart(self, name: str) -> Service:
        """Start a service again, whether it died or still runs."""
        service = self._by_name[name]
        await service.stop()
        await service.start()
        self._watch(service)
        return service

    def death(self) -> Death | None:
        """Return a death that nobody was told of yet, or None."""
        return None if self._deaths.empty() else self._deaths.get_nowait()

    async def next_death(self, seconds: float) -> Death | None:
        """Wait for a death at most so long."""
        # Not wait_for: before Python 3.12 a death that meets a cancellation would swallow that.
        try:
            async with asyncio.timeout(seconds):
                return await self._deaths.get()
        except TimeoutError:
            return None

    async def stop(self) -> None:
        """Stop all services, the broker last so that the others can say goodbye."""
        others = [s for name, s in self._by_name.items() if name != BROKER]
        await asyncio.gather(*(service.stop() for service in others))
        if BROKER in self._by_name:
            await self._by_name[BROKER].stop()

    def pids(self) -> dict[str, int]:
        """Return process ids by name."""
        return {name: service.pid for name, service in self._by_name.items()}

    def facts(self) -> dict[str, dict[str, Any]]:
        """Return process ids and commands by name."""
        return {
            name: {"pid": service.pid, "command": list(service.spec.command)}
            for name, service in self._by_name.items()
        }

    def _watch(self, service: Service) -> None:
        async def watch() -> None:
            status = await service.wait()
            if status is not None:
                self._deaths.put_nowait(Death(service, status))

        task = asyncio.create_task(watch())
        self._watchers.add(task)
        task.add_done_callback(self._watchers.discard)
