"""Messages that the coordinator receives: decoded with their schemas, bad ones set aside."""

from collections.abc import Callable

from broker.access.rights import RESPONSE_TOPIC
from federated_optimizer.coordinator.facts.heard_facts import HeardFacts
from federated_optimizer.coordinator.queries.heard_reports import HeardReports
from federated_optimizer.coordinator.queries.query_registry import Queries
from federated_optimizer.coordinator.shared_parts import SharedParts
from federated_optimizer.coordinator.tables.lake_requests import LakeRequests
from federated_optimizer.coordinator.tables.table_change_requests import TableChanges
from federated_optimizer.coordinator.trials.source_trials import SourceTrials
from host.clocks import monotonic_clock
from host.mqtt import Message
from host.mqtt.dead_letters import DeadLetters
from streamsql.errors import FederationError, WireError
from streamsql.wire.codec import decode_compressed_packed, decode_json, decode_packed, encode_json
from streamsql.wire.messages import Command, DeltaBatch, LinkMessage, QueryProblem
from streamsql.wire.site_messages import (
    ENGINE_ROLES,
    Birth,
    SiteFlows,
    SiteRole,
    SiteState,
    SourceCount,
)
from streamsql.wire.stored_tables.lake_messages import LakeAnswer
from streamsql.wire.stored_tables.table_changes import TableChanged
from streamsql.wire.topics import check_id
from streamsql.wire.trial_messages import TrialReport


class Receiver:
    """Routes messages to membership, links and queries.

    Args:
        shared: What is known of sites.
        queries: Get what concerns them.
        changes: Wait for answers of the static engine.
        lake: Likewise.
        trials: Wait for what gateways report of sources that are tried.
        heard: Learns from states and births.
        on_sites: Called when sites or what they offer have changed.
        on_removed: Called with a site that was removed.
        on_own_state: Called with the retained state under the coordinator's own id.
        on_retained_fragment: Called with query and site of fragments found on the broker.
        on_retained_source: Called with the topic level of declared sources found on the broker.
        on_resync: Called with query and site that asks for everything of the channel to it.
        on_counts: Called when counts of a site have come.

    Attributes:
        messages: Received so far.
        heard: Takes what is about queries.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - each is one seam
        self,
        shared: SharedParts,
        queries: Queries,
        changes: TableChanges,
        lake: LakeRequests,
        trials: SourceTrials,
        heard: HeardFacts,
        *,
        on_sites: Callable[[], None],
        on_removed: Callable[[str], None],
        on_own_state: Callable[[SiteState], None],
        on_retained_fragment: Callable[[str, str], None],
        on_retained_source: Callable[[str], None],
        on_resync: Callable[[str, str], None],
        on_counts: Callable[[], None],
    ) -> None:
        self.messages = 0
        self._counted = 0
        self._shared = shared
        self._queries = queries
        self.heard = HeardReports(shared, queries)
        self._changes = changes
        self._lake = lake
        self._trials = trials
        self._heard = heard
        self._on_sites = on_sites
        self._on_removed = on_removed
        self._on_own_state = on_own_state
        self._on_retained_fragment = on_retained_fragment
        self._on_retained_source = on_retained_source
        self._on_resync = on_resync
        self._on_counts = on_counts
        self._dead_letters = DeadLetters(shared.settings.host, shared.client, shared.topics)

    @property
    def bad_payloads(self) -> int:
        """Payloads so far that could not be used."""
        return self._dead_letters.count

    def filters(self) -> tuple[str, ...]:
        """Return the subscriptions to keep."""
        topics = self._shared.topics
        return (
            topics.state(),
            topics.birth(),
            topics.host_state(),
            topics.link(),
            topics.output(),
            topics.flow(),
            topics.columns(),
            topics.error(),
            topics.clock(),
            topics.request(self._shared.settings.host, "resync"),
            topics.response(),
        )

    def on_messages(self, burst: list[Message]) -> None:
        """Ingest a burst; a bad payload never stops the rest."""
        self.messages += len(burst)
        for message in burst:
            # Answers about the broker's accounts are read by the fleet.
            is_ours = message.topic != RESPONSE_TOPIC
            if is_ours and not self._shared.broker.hear(message.topic, message.payload):
                self._dead_letters.guard(self._dispatch, message)

    def _dispatch(self, message: Message) -> None:
        match self._shared.topics.parts(message.topic):
            case ["q", query, "out", site]:
                self.heard.output(query, site, decode_packed(message.payload, DeltaBatch))
            case ["gw", site, "flow" | "columns" as counted]:
                self._take_counts(site, message.payload, of_columns=counted == "columns")
            case ["q", query, "error", site]:
                self._problem(query, site, message.payload)
            case ["q", query, "frag", site]:
                if message.retain and message.payload:
                    self._on_retained_fragment(query, site)
            case ["source", level]:
                if message.retain and message.payload:
                    self._on_retained_source(level)
            case ["gw", gateway, "link", *levels]:
                self._link(gateway, tuple(levels), message.payload)
            case ["gw" | "host" as branch, site, "state"]:
                self._state(branch, site, message.payload, retained=message.retain)
            case ["gw", site, "cmd", "resync", sender] if site == self._shared.settings.host:
                request = decode_json(message.payload, Command)
                if request.channel != sender:
                    raise WireError(f"{sender!r:.80} asks for {request.channel!r:.80}")
                self._on_resync(request.query, request.channel)
            case ["gw", site, "rsp", request]:
                self._answer(site, request, message.payload)
            case ["gw", site, "clock"]:
                self._tell_time(site, decode_json(message.payload, Command))
            case ["gw", site, "birth"]:
                self._birth(site, message.payload)
            case _:
                raise WireError(f"the coordinator does not read {message.topic!r:.200}")

    def _answer(self, site: str, request: str, payload: bytes) -> None:
        if site == self._shared.settings.static and self._lake.waits_for(request):
            self._lake.heard(decode_packed(payload, LakeAnswer))
        elif site == self._shared.settings.static:
            self._changes.heard(decode_packed(payload, TableChanged))
        elif self._trials.waits_for(site, request):
            # Whoever else asks a gateway for something gets the answer on such a topic, too.
            self._trials.heard(request, decode_packed(payload, TrialReport))

    def _take_counts(self, site: str, payload: bytes, *, of_columns: bool) -> None:
        if not of_columns:
            self._counts(site, decode_compressed_packed(payload, SiteFlows))
            return
        count = decode_packed(payload, SourceCount)
        role = self._shared.membership.role(site)
        if role is not None:  # else it was removed
            self._heard.hear_columns(site, count, stored=role == SiteRole.STATIC)

    def _counts(self, site: str, flows: SiteFlows) -> None:
        """Ingest a site's counts; those of a query that are refused do not stop the others.

        Raises:
            FederationError: Some were refused; says why the first were.
        """
        self._shared.membership.hear_live(site, max(r.epoch for r in flows.reports.values()))
        self._counted += 1
        refused: list[FederationError] = []
        for query, report in flows.reports.items():
            try:
                # A query that is not known is withdrawn on a topic of this name.
                self.heard.flow(check_id(query, "query"), site, report, self._counted)
            except FederationError as error:
                refused.append(error)
        self._on_counts()
        if refused:
            raise refused[0]

    def _problem(self, query: str, site: str, payload: bytes) -> None:
        problem = decode_json(payload, QueryProblem) if payload else None
        self.heard.problem(query, site, problem)

    def _link(self, gateway: str, levels: tuple[str, ...], payload: bytes) -> None:
        if not payload:
            self._shared.links.remove(gateway, levels)
        elif not self._shared.links.put(gateway, levels, decode_json(payload, LinkMessage)):
            raise WireError("there are more links than the coordinator can keep")

    def _check_role(self, branch: str, site: str, role: SiteRole) -> None:
        """Refuse what a site says it is for and may not be.

        Raises:
            WireError: It is no role of that branch of topics, or only others may be base sites.
        """
        settings = self._shared.settings
        if (role in ENGINE_ROLES) is not (branch == "gw"):
            raise WireError(f"{site!r:.80} says on a topic of {branch!r} that it is {role.value!r}")
        if role == SiteRole.BASE and settings.only_bases and site not in settings.bases:
            named = ", ".join(settings.bases)
            raise WireError(
                f"{site!r:.80} says that it is a base site; only {named} may be one",
                hint="name it in base_sites of the console's settings if it is to be one",
            )

    def _state(self, branch: str, site: str, payload: bytes, *, retained: bool) -> None:
        if not payload:
            self._removed(site)
            return
        state = decode_json(payload, SiteState)
        self._check_role(branch, site, state.role)
        if site == self._shared.settings.host:
            self._on_own_state(state)
            return
        before = self._shared.membership.epoch(site)
        at = monotonic_clock() if retained else None
        now = self._shared.clock()
        if self._shared.membership.hear_state(site, state, now, retained_at=at):
            self._heard.hear_state(site, state, min(now, state.ts) if retained else now)
            has_restarted = -1 < before < state.epoch
            if has_restarted:
                self._queries.site_restarted(site, state.started)
            if has_restarted or not state.online:
                self._queries.site_left(site)
            self._on_sites()

    def _tell_time(self, site: str, question: Command) -> None:
        """Answer a gateway that compares its clock with ours."""
        received = self._shared.clock()
        told = {**question.arguments, "received": received, "sent": self._shared.clock()}
        answer = Command(id=question.id, arguments=told)
        self._shared.client.publish(self._shared.topics.command(site, "clock"), encode_json(answer))

    def _birth(self, site: str, payload: bytes) -> None:
        if not payload:
            self._removed(site)
            return
        birth = decode_json(payload, Birth)
        if birth.gateway != site:
            raise WireError(f"a birth of {birth.gateway!r:.80} on the topic of {site!r:.80}")
        self._check_role("gw", site, birth.role)
        if self._shared.membership.hear_birth(birth):
            self._heard.hear_birth(birth, self._shared.clock())
            self._on_sites()

    def _removed(self, site: str) -> None:
        if self._shared.membership.forget(site):
            self._heard.forget(site)
            self._on_removed(site)
            self._on_sites()
