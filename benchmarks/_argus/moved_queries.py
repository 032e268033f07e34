"""Queries that move onto a node made of their inside, by the product's choice and prices.

The product looks at all runs of which a newer run reads a source, a few at a time. Here those are
looked at from whose inside a node has just been made: others have no reason that is new.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from federated_optimizer import plan
from federated_optimizer.coordinator.adaptation.bundle_choice import BundleChoice, bundle_choice
from federated_optimizer.coordinator.adaptation.caused_prices import CausedPrices
from federated_optimizer.coordinator.adaptation.move_gains import why_no_gain, why_no_work
from federated_optimizer.coordinator.adaptation.reconsidered import filling_cost
from federated_optimizer.coordinator.contract.coordinator_model import Origin
from federated_optimizer.coordinator.queries.runs.fed_runs import FedRuns
from federated_optimizer.coordinator.queries.runs.read_parts import may_leave
from federated_optimizer.coordinator.queries.runs.readable_offers import is_ending
from federated_optimizer.costs.fragment_estimates import FragmentEstimate, fragment_estimates
from federated_optimizer.costs.weighing import Weighing
from federated_optimizer.registering.registration import register
from federated_optimizer.registering.registration_terms import NewNode, Planning
from federated_optimizer.sharing.forms.canonical_plan import canonical_plan
from federated_optimizer.sharing.node_offers import Offer
from federated_optimizer.statistics.planning_statistics import Statistics
from federated_optimizer.testing_network import Change, Network, NetworkRun
from streamsql.algebra.operators import Plan
from streamsql.wire.fragments import FragmentBundle


@dataclass(frozen=True, slots=True)
class _Reader:
    """Whoever reads a run: queries, or nobody but other runs.

    Attributes:
        known: The run.
    """

    known: NetworkRun

    @property
    def run(self) -> str:
        """Its name."""
        return self.known.bundle.query

    @property
    def bundle(self) -> FragmentBundle:
        """Its bundle."""
        return self.known.bundle

    @property
    def origin(self) -> Origin:
        """Of a node, or of a query."""
        return Origin.SESSION if self.known.queries else Origin.NODE

    @property
    def logical(self) -> Plan:
        """Its plan over sources."""
        return self.known.logical

    @property
    def has_failed(self) -> bool:
        """Nothing fails here."""
        return False


class _Runs:
    """The runs of a network, as the choice looks at them."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._fed = FedRuns()
        self._known: dict[str, FragmentBundle] = {}

    @property
    def fed(self) -> FedRuns:
        """Runs by the runs whose rows they read, as they are now."""
        runs = self._network.runs
        for name in self._known.keys() - runs:
            self._fed.put(name, ())
            del self._known[name]
        for name, run in runs.items():
            if self._known.get(name) is not run.bundle:
                self._known[name] = run.bundle
                self._fed.put(name, run.bundle.feeds)
        return self._fed

    def leader(self, run: str) -> _Reader | None:
        """Return who reads a run."""
        known = self._network.runs.get(run)
        return None if known is None else _Reader(known)

    def readers(self, run: str) -> Sequence[_Reader]:
        """Return who reads a run."""
        leader = self.leader(run)
        return () if leader is None else (leader,)


@dataclass(frozen=True, slots=True)
class _Facts:
    """Facts that do not change."""

    planning: Planning

    def statistics(self, _current: FragmentBundle | None = None) -> Statistics:
        """Return what is known of sources."""
        return self.planning.statistics

    def estimates(self, bundle: FragmentBundle) -> Mapping[str, FragmentEstimate]:
        """Return what each fragment of a bundle is expected to send."""
        known = self.planning
        return fragment_estimates(bundle, known.statistics, known.topology.coordinator)


@dataclass(slots=True)
class Moves:
    """Moves of the queries of a network.

    Attributes:
        network: Changed by moves.
        planning: The facts, and the metric.
    """

    network: Network
    planning: Planning
    _alone: dict[str, FragmentBundle] = field(default_factory=dict)
    _runs: _Runs = field(init=False)

    def __post_init__(self) -> None:
        self._runs = _Runs(self.network)

    def after(self, nodes: Collection[NewNode], made_for: str) -> Iterator[tuple[str, Change]]:
        """Move the queries for which that is worth it, since nodes were made; yield run and move.

        The query has just been planned for which they were made, as the run `made_for`.

        Work: that of planning each run that computes such a part inside.
        """
        index = self.network.sharing.index
        forms = [canonical_plan(node.plan).form for node in nodes]
        inside = [o.run for form in forms for o in index.of_form(form) if not o.is_readable]
        for run in dict.fromkeys(inside):
            is_older = run in self.network.runs and run != made_for
            bundle = self._better(run) if is_older else None
            if bundle is not None:
                yield run, self.network.move(run, bundle)

    def _better(self, run: str) -> FragmentBundle | None:
        """Return what queries move onto; None: they stay."""
        old, runs = self.network.runs[run], self._runs
        if not old.queries or not may_leave(runs, _Reader(old)):
            return None
        alone = self.network.elsewhere(self._by_itself(old), run)
        shared = self.network.elsewhere(self._over_others(old), run)
        prices = CausedPrices(_Facts(self.planning), runs, (run,))
        weighing = Weighing(old.bound.metric or self.planning.metric)
        choice = bundle_choice(old.bundle, alone, shared, prices, weighing)
        if choice is None or choice.number is None:
            return None
        taken = (alone, shared)[choice.number]
        return None if self._why_not(choice, taken, weighing) else taken

    def _why_not(self, choice: BundleChoice, taken: FragmentBundle, weighing: Weighing) -> str:
        if choice.work is not None:
            return why_no_work(choice.work)
        gain = weighing.value(choice.before) - weighing.value(choice.after)
        filling = filling_cost(taken, self.planning.statistics)
        return why_no_gain(gain, weighing.value(filling))

    def _by_itself(self, old: NetworkRun) -> FragmentBundle:
        """Return the plan of a query alone: that of its text, as facts do not change."""
        text, known = old.bundle.text, self.planning
        if text not in self._alone:
            self._alone[text] = plan(
                old.bound, known.topology, query="", text=text, statistics=known.statistics
            )
        return self._alone[text]

    def _over_others(self, old: NetworkRun) -> FragmentBundle:
        """Return the plan of a query over what others have, whatever its own run has."""
        run = old.bundle.query

        def allowed(offer: Offer) -> bool:
            return offer.is_readable and offer.run != run and not is_ending(self._runs, offer)

        sharing = replace(self.network.sharing, allowed=allowed, makes_nodes=False)
        planning = replace(
            self.planning, text=old.bundle.text, replanned=True, reads=old.bundle.results_read
        )
        return register(old.bound, sharing, planning, self.network.next_run).bundle
