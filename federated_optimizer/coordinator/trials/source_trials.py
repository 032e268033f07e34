"""Trials of sources: asked of gateways, kept for a while with what they have reported."""

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from typing_extensions import override

from federated_optimizer.coordinator.contract.coordinator_model import SiteInfo
from federated_optimizer.coordinator.contract.trial_model import (
    MappedTrial,
    TrialInfo,
    TrialsApi,
)
from federated_optimizer.coordinator.planning_processes import Beside
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.trials.tried_sources import (
    listening,
    listening_for_births,
    mapped_samples,
    tried_definition,
)
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import Value
from streamsql.errors import DeploymentError
from streamsql.mapping.offers import MAX_RECORDS
from streamsql.proposals.announcements.announced_sources import (
    TOPICS,
    proposals_of,
    proposals_of_payloads,
)
from streamsql.proposals.offered import Chosen, propose_offered
from streamsql.proposals.proposal import Proposal
from streamsql.proposals.proposing import Asked
from streamsql.proposals.sample import Sample
from streamsql.wire.codec import encode_json
from streamsql.wire.messages import Command
from streamsql.wire.site_messages import EndpointState, SiteRole
from streamsql.wire.source_orders import SourceOrder
from streamsql.wire.topics import check_id
from streamsql.wire.trial_messages import (
    MAX_PAYLOADS,
    MAX_SECONDS,
    MAX_WHOLE_BYTES,
    MAX_WHOLE_PAYLOADS,
    SAMPLE,
    STOP,
    TRIAL,
    SourceTrial,
    TrialReport,
)

MAX_KEPT = 20
ANSWER_SECONDS = 8.0
"""How much longer than asked a trial may take before its gateway counts as silent."""

Send = Callable[[str, str, Command], None]


@dataclass(slots=True)
class _Kept:
    """A trial.

    Attributes:
        definition: What is tried; None: announcements are listened to.
        until: By `time.monotonic`, when its gateway should have said that it has ended.
        bytes: Of the samples so far.
    """

    info: TrialInfo
    definition: SourceDefinition | None
    endpoint: str
    until: float
    heard: set[int] = field(default_factory=set)
    bytes: int = 0


def trials_of(shared: SharedParts, sites: Callable[[], Sequence[SiteInfo]]) -> "SourceTrials":
    """Return the trials of a coordinator, which asks gateways on the broker."""

    def send(site: str, verb: str, command: Command) -> None:
        shared.membership.check_reachable(site)
        shared.deployment.command(check_id(site, "site"), verb, command)

    def taken() -> list[str]:
        return [definition.name for definition in shared.catalog]

    return SourceTrials(send, sites, taken, shared.beside)


class SourceTrials(TrialsApi):
    """The trials of one coordinator.

    Args:
        send: Sends a command to a site: site, verb, command. Raises DeploymentError if it is away.
        sites: What sites have said of themselves.
        taken: Names that there are in the catalog.
        beside: Where statements of users are bound.
    """

    def __init__(
        self,
        send: Send,
        sites: Callable[[], Sequence[SiteInfo]],
        taken: Callable[[], Sequence[str]],
        beside: Beside,
    ) -> None:
        self._send = send
        self._sites = sites
        self._taken = taken
        self._beside = beside
        self._kept: dict[str, _Kept] = {}

    @override
    def listen(
        self,
        gateway: str,
        endpoint: str,
        options: Mapping[str, str],
        *,
        seconds: float = 10.0,
        payloads: int = MAX_PAYLOADS,
    ) -> TrialInfo:
        found, state = self._endpoint(gateway, endpoint)
        if not state.listens and not state.browses:
            raise DeploymentError(
                f"connector {state.connector} reads the addresses in columns and cannot list what "
                "there is, because its devices do not list it",
                hint="write the statement with the addresses in the device's manual, and try that",
            )
        definition = listening(state.connector, endpoint, options)
        orders = (SourceOrder(1, definition),)
        # What a device offers says more than what happens to come.
        trial = SourceTrial(orders, seconds, payloads, browse=state.browses)
        return self._begin(found, endpoint, trial, definition, Schema(()))

    @override
    async def try_statement(
        self, gateway: str, text: str, *, seconds: float = 10.0, payloads: int = MAX_PAYLOADS
    ) -> TrialInfo:
        definition = await self._beside.run(lambda: tried_definition(text), "checking the text")
        assert definition.mapping is not None  # noqa: S101  (`tried_definition` refuses it)
        endpoint = definition.mapping.endpoint
        found = gateway or self._endpoint("", endpoint, definition.mapping.connector)[0]
        trial = SourceTrial((SourceOrder(1, definition),), seconds, payloads)
        return self._begin(found, endpoint, trial, definition, definition.schema)

    @override
    def discover(self, gateway: str, endpoint: str, *, seconds: float = 10.0) -> TrialInfo:
        found, state = self._endpoint(gateway, endpoint)
        kind = state.connector
        if kind != "mqtt":
            raise DeploymentError(
                f"endpoint {endpoint} is of connector {kind}; devices announce themselves on "
                "brokers",
                hint="name an endpoint of connector mqtt",
            )
        retained = tuple(
            SourceOrder(1, listening(kind, endpoint, {"topic": topic}, f"announced_{number}"))
            for number, topic in enumerate(TOPICS)
        )
        trial = SourceTrial(
            (*retained, SourceOrder(1, listening_for_births(kind, endpoint))),
            seconds,
            MAX_WHOLE_PAYLOADS,
            whole=True,
        )
        return self._begin(found, endpoint, trial, None, Schema(()))

    @override
    def info(self, trial_id: str) -> TrialInfo:
        kept = self._kept[trial_id]
        if not kept.info.done and time.monotonic() > kept.until:
            kept.info = replace(
                kept.info,
                done=True,
                problem=kept.info.problem or f"gateway {kept.info.gateway} does not answer",
                hint=kept.info.hint or "see the page Gateways: is it online, and of this release?",
            )
        return kept.info

    @override
    def stop(self, trial_id: str) -> TrialInfo:
        kept = self._kept[trial_id]
        if not kept.info.done:
            command = Command(id=trial_id, arguments={STOP: True})
            self._send(kept.info.gateway, SAMPLE, command)
        return kept.info

    @override
    async def propose(
        self, trial_id: str, zone: str = "", chosen: Chosen | None = None
    ) -> tuple[Proposal, ...]:
        kept = self._kept[trial_id]
        samples = [
            Sample(sample.payload, str(sample.facts.get("topic", "")), sample.arrival)
            for sample in kept.info.samples
            if sample.size == len(sample.payload) and not sample.is_record
        ]
        taken = self._taken()
        if kept.definition is None:
            where = Asked("mqtt", kept.endpoint, zone=zone)
            return await self._beside.run(
                lambda: proposals_of(samples, where, taken), "reading what devices announce"
            )
        mapping = kept.definition.mapping
        assert mapping is not None  # noqa: S101  (only such definitions are tried)
        asked = Asked(mapping.connector, mapping.endpoint, mapping.gateways, mapping.options, zone)
        if kept.info.browses:
            offers = kept.info.offers
            return await self._beside.run(
                lambda: propose_offered(offers, asked, taken, chosen), "proposing statements"
            )
        return await self._beside.run(
            lambda: proposals_of_payloads(samples, asked, taken), "proposing statements"
        )

    @override
    async def map(self, trial_id: str, text: str) -> MappedTrial:
        samples = self._kept[trial_id].info.samples
        return await self._beside.run(lambda: mapped_samples(text, samples), "trying the text")

    def waits_for(self, site: str, trial_id: str) -> bool:
        """Whether a trial of this id runs at a site."""
        kept = self._kept.get(trial_id)
        return kept is not None and kept.info.gateway == site and not kept.info.done

    def heard(self, trial_id: str, report: TrialReport) -> None:
        """Ingest a report of a trial that is waited for; one that comes twice counts once."""
        kept = self._kept[trial_id]
        if report.number in kept.heard:
            return
        kept.heard.add(report.number)
        kept.bytes += sum(len(sample.payload) for sample in report.samples)
        info = kept.info
        # A gateway keeps these bounds itself; one that does not must not fill our memory.
        is_too_much = (
            kept.bytes > 2 * MAX_WHOLE_BYTES
            or len(info.offers) + len(report.offers) > 2 * MAX_RECORDS
            or len(info.samples) + len(report.samples) > 2 * MAX_WHOLE_PAYLOADS
        )
        kept.info = replace(
            info,
            samples=info.samples if is_too_much else (*info.samples, *report.samples),
            offers=info.offers if is_too_much else (*info.offers, *report.offers),
            dropped=report.dropped,
            notes=(*info.notes, *report.notes)[-20:],
            problem=report.problem,
            hint=report.hint,
            done=report.done or is_too_much,
        )

    def _begin(
        self,
        gateway: str,
        endpoint: str,
        trial: SourceTrial,
        definition: SourceDefinition | None,
        columns: Schema,
    ) -> TrialInfo:
        if not 0 < trial.seconds <= MAX_SECONDS or trial.payloads < 1:
            raise DeploymentError(
                f"a trial takes up to {MAX_SECONDS:g} s and {MAX_PAYLOADS} payloads",
                hint="use smaller numbers above 0",
            )
        info = TrialInfo(secrets.token_hex(8), gateway, columns, browses=trial.browse)
        arguments: dict[str, Value] = {TRIAL: encode_json(trial).decode()}
        self._send(gateway, SAMPLE, Command(id=info.id, arguments=arguments))
        while len(self._kept) >= MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        until = time.monotonic() + trial.seconds + ANSWER_SECONDS
        self._kept[info.id] = _Kept(info, definition, endpoint, until)
        return info

    def _endpoint(
        self, gateway: str, endpoint: str, connector: str = ""
    ) -> tuple[str, EndpointState]:
        """Return (gateway, what it says of an endpoint).

        Raises:
            DeploymentError: No gateway that is online has it.
        """
        known: set[str] = set()
        for site in self._sites():
            if site.role != SiteRole.GATEWAY or not site.online or site.figures is None:
                continue
            if gateway and site.site != gateway:
                continue
            for each in site.figures.endpoints:
                known.add(each.name)
                if each.name == endpoint or (not endpoint and each.connector == connector):
                    return site.site, each
        where = f"gateway {gateway}" if gateway else "no gateway that is online"
        raise DeploymentError(
            f"{where} has {'no' if gateway else 'an'} endpoint {endpoint!r:.60}",
            hint=f"endpoints there: {', '.join(sorted(known)[:10]) or 'none'}",
        )
