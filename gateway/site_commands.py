"""Commands of the coordinator, and what a site does at each."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gateway.buffer.disk_buffer import DiskBuffer
from gateway.declared.declared_sources import DeclaredSources, Definitions
from gateway.declared.trial_commands import TrialCommands
from gateway.gateway_settings import GatewaySettings
from gateway.intake.observations import ObservationLane
from gateway.intake.simulated_past import publish_past
from gateway.session.announcer import Announcer
from gateway.session.clock_exchange import ClockExchange
from gateway.session.command_answers import Answer, Handler
from gateway.session.identity import BeginAgainError, RenamedError, Session
from host.clocks import wall_clock
from host.mqtt.broker_passwords import PasswordFile
from streamsql.wire.messages import CREDENTIALS, Command

if TYPE_CHECKING:
    from gateway.join.credential_changes import CredentialChanges


class Commanded(Protocol):
    """The parts of a gateway that commands are about."""

    settings: GatewaySettings
    session: Session
    announcer: Announcer
    buffer: DiskBuffer
    clock: ClockExchange
    declared: DeclaredSources
    definitions: Definitions
    lane: ObservationLane
    trials: TrialCommands
    passwords: PasswordFile | None
    settings_file: Path | None

    def begin_again(self, reason: BeginAgainError) -> None:
        """End this life on request."""


def handlers_of(site: Commanded) -> dict[str, Handler]:
    """Return the handlers of a site's commands by their verbs."""

    def announce(_command: Command) -> Answer:
        site.announcer.announce()
        return {"done": True, "message": f"epoch {site.session.epoch}"}

    def flush(_command: Command) -> Answer:
        site.lane.flush()
        return {"done": True, "message": f"{len(site.buffer)} packs wait"}

    def restart(_command: Command) -> Answer:
        # After the answer.
        asyncio.get_running_loop().call_soon(site.begin_again, BeginAgainError())
        return {"done": True, "message": "it starts again"}

    def simulate(command: Command) -> Answer | Coroutine[object, object, Answer]:
        if command.arguments.get("action") != "past":
            return site.declared.simulate(command.arguments)
        return publish_past(
            site.declared, site.lane, lambda: site.definitions, wall_clock, command.arguments
        )

    return {
        "restart": restart,
        "rebirth": announce,
        "ping": announce,
        "clock": site.clock.answered,
        "flush": flush,
        "sample": site.trials.heard,
        "simulate": simulate,
        CREDENTIALS: _CredentialHandler(site),
    }


class _CredentialHandler:
    """Changes credentials; the modules for it are loaded at the first command."""

    def __init__(self, site: Commanded) -> None:
        self._site = site
        self._changes: CredentialChanges | None = None

    def __call__(self, command: Command) -> Coroutine[object, object, Answer]:
        from gateway.join.credential_changes import CredentialChanges  # noqa: PLC0415

        if self._changes is None:
            site = self._site
            self._changes = CredentialChanges(
                site.settings,
                site.passwords,
                site.settings_file,
                lambda name: site.begin_again(RenamedError(name)),
            )
        return self._changes.carry_out(command.arguments)
