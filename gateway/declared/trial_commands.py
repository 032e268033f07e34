"""The command `sample`: sources are tried at this gateway."""

from typing import TYPE_CHECKING

from gateway.gateway_settings import GatewaySettings
from host.clocks import Clock
from host.mqtt import MessageClient
from host.mqtt.publishing import publish_or_warn
from streamsql.errors import WireError
from streamsql.wire.codec import decode_json, encode_packed
from streamsql.wire.messages import Command
from streamsql.wire.topics import Topics, check_id

if TYPE_CHECKING:
    from gateway.connectors.trial import SourceTrials
    from streamsql.wire.trial_messages import TrialReport


class TrialCommands:
    """Starts and stops trials, and publishes what they report."""

    def __init__(
        self, settings: GatewaySettings, clock: Clock, client: MessageClient, topics: Topics
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._client = client
        self._topics = topics
        self._trials: SourceTrials | None = None

    def heard(self, command: Command) -> None:
        """Start or stop a trial.

        Raises:
            WireError: It is no legal command; the answer says so as well.
        """
        from streamsql.wire.trial_messages import (  # noqa: PLC0415  (by who tries)
            STOP,
            TRIAL,
            SourceTrial,
            TrialReport,
        )

        trial_id = check_id(command.id)
        if command.arguments.get(STOP):
            if self._trials is not None:
                self._trials.stop(trial_id)
            return
        try:
            trial = decode_json(str(command.arguments.get(TRIAL, "")).encode(), SourceTrial)
        except WireError as error:
            self._report(TrialReport(trial_id, 0, problem=error.message, done=True))
            raise
        if self._trials is None:
            self._trials = self._made()
        self._trials.start(trial_id, trial)

    async def close(self) -> None:
        """End what runs."""
        if self._trials is not None:
            await self._trials.close()

    def _made(self) -> "SourceTrials":
        """Return what runs trials; a gateway where nothing is tried loads none of it."""
        from gateway.connectors.registry import ConnectorRegistry  # noqa: PLC0415
        from gateway.connectors.trial import SourceTrials, TrialSite  # noqa: PLC0415

        settings = self._settings
        site = TrialSite(
            settings.gateway,
            settings.endpoints,
            ConnectorRegistry(settings.connectors),
            self._clock,
        )
        return SourceTrials(site, self._report)

    def _report(self, report: "TrialReport") -> None:
        topic = self._topics.response(self._settings.gateway, report.id)
        publish_or_warn(self._client, topic, encode_packed(report), otherwise="trial not reported")
