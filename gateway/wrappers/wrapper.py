"""The protocol between a gateway and its wrappers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from gateway.connectors.reading import Emit, Memory
from host.clocks import Clock
from streamsql.data.types import Value


def nobody_listens(_text: str) -> None:
    """Drop a note."""


def nobody_remembers(_memory: Memory) -> None:
    """Forget what is to be remembered."""


@dataclass(slots=True)
class WrapperContext:
    """What a wrapper is given.

    Attributes:
        gateway: Id of the gateway.
        clock: The gateway's time; a wrapper never asks another clock.
        emit: Where readings go.
        problem: Report a fault of the device in plain words; the wrapper goes on.
        options: From the settings.
        note: Say in plain words what the wrapper has come to, where that is no fault.
        remember: Say, before readings are emitted, what to know after a restart of the gateway
            that knows of them: both are kept, or neither.
        memory: What was remembered last, in an earlier life of the gateway too; or None.
    """

    gateway: str
    clock: Clock
    emit: Emit
    problem: Callable[[str], None]
    options: Mapping[str, object] = field(default_factory=dict)
    note: Callable[[str], None] = nobody_listens
    remember: Callable[[Memory], None] = nobody_remembers
    memory: Memory | None = None


class Wrapper(Protocol):
    """Reads devices until it is cancelled.

    Called once per process start; it must not swallow cancellation. An exception that leaves `run`
    is reported and the wrapper is started again after a pause that doubles up to a minute.
    """

    kind: str
    streams: tuple[str, ...]

    async def run(self, context: WrapperContext) -> None:
        """Emit readings for ever."""


@runtime_checkable
class Simulation(Protocol):
    """A wrapper whose devices can be told what to do, because they are simulated."""

    def command(self, action: str, arguments: dict[str, Value]) -> str:
        """Do it; return what was done.

        Raises:
            ValueError: The action is unknown or its target is not behind this gateway.
        """
