"""Bundles of shared plans: placed where all is there, searched for where something remains."""

import dataclasses
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from federated_optimizer.alternatives.heuristics import heuristics_of
from federated_optimizer.cutting.placing import place
from federated_optimizer.cutting.read_rows import reading
from federated_optimizer.cutting.rows_to_base import rows_to_base
from federated_optimizer.network.run_ages import is_older
from federated_optimizer.network.shareable import why_alone
from federated_optimizer.planning import plan, search_of
from federated_optimizer.registering.registration_terms import Planning, Sharing
from federated_optimizer.search.choosing import NOTHING_RUNS, Search
from federated_optimizer.sharing.computation_index import Allowed, Found
from federated_optimizer.sharing.delivered_rows import (
    delivered_at,
    delivered_once,
    rows_of_others,
)
from federated_optimizer.sharing.forms.canonical_plan import canonical_plan
from federated_optimizer.sharing.node_offers import NO_OFFERS, Offer
from federated_optimizer.sharing.sharing_step import SharedPlan
from federated_optimizer.sharing.strategy import Strategy
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.algebra.column_origins import column_units
from streamsql.algebra.operators import Plan, RemoteSource, walk_plan
from streamsql.binder import BoundQuery
from streamsql.wire.fragments import FragmentBundle


@dataclass(frozen=True, slots=True)
class RunBundles:
    """Bundles of one query and of its nodes.

    Attributes:
        query: The query for which they are made.
        sharing: What may be shared.
        planning: What plans rest on.
        next_run: Returns names of runs, each greater than those before.
    """

    query: BoundQuery
    sharing: Sharing
    planning: Planning
    next_run: Callable[[], str]

    def may_read(self, offer: Offer) -> bool:
        """Return whether the query may read an offer where it is."""
        return offer.is_at(self.planning.topology.bases[0]) and self.sharing.allowed(offer)

    def ordered(self, plan: Plan, offers: Mapping[str, Offer] = NO_OFFERS) -> Plan:
        """Return a plan with its joins in the order that is chosen for it."""
        if not self.sharing.is_eager:
            return self._search(self.query, plan, offers).taken().plan
        # The parts become nodes, so they are ordered as they are.
        bound, known = self._asked(self.query, plan, offers)
        to = self.planning
        search = search_of(bound, to.topology, known, to.metric, unread_sides=False)
        return search.taken().plan

    def _search(self, bound: BoundQuery, plan: Plan, offers: Mapping[str, Offer]) -> Search:
        bound, known = self._asked(bound, plan, offers)
        return self.planning.search(bound, self.planning.topology, known, self.planning.metric)

    def _asked(
        self, bound: BoundQuery, plan: Plan, offers: Mapping[str, Offer]
    ) -> tuple[BoundQuery, Statistics]:
        """Return a query of a plan, and what is known with what its leaves stand for."""
        return dataclasses.replace(bound, plan=plan), self.statistics_of(offers)

    def statistics_of(self, offers: Mapping[str, Offer]) -> Statistics:
        """Return what is known, of rows of other runs by the sources that these are computed from.

        Args:
            offers: By the name of the leaf that reads them.
        """
        nodes = {name: offer.plan for name, offer in offers.items()}
        return dataclasses.replace(self.planning.statistics, nodes=nodes)

    def bundle(  # noqa: PLR0913 - a plan, and how it is placed
        self,
        bound: BoundQuery,
        found: SharedPlan,
        logical: Plan,
        run: str,
        version: int = 0,
        *,
        searched: bool = True,
        to_base: bool = False,
    ) -> FragmentBundle:
        """Return the bundle of a plan: without a search where all of it is there.

        Not `searched`, joins are computed at the base in the order of the plan; likewise `to_base`,
        by which gateways deliver rows and no parts of groups, distinct or first rows.
        """
        known = self.planning
        version = version or known.version
        run = run or self.next_run()
        if found.is_there or to_base or not searched:
            bundle = place(
                found.plan,
                self.planning.topology,
                query=run,
                version=version,
                text=known.text,
                emit=bound.emit,
                statistics=known.statistics,
                foresee=None if found.is_there else known.foresee,
                taken=rows_to_base(found.plan) if to_base else None,
                kept=heuristics_of(bound.heuristics),
                offers=found.offers,
            )
        else:
            own = bound is self.query
            bundle = plan(
                bound,
                self.planning.topology,
                query=run,
                version=version,
                text=known.text if own else "",
                statistics=known.statistics,
                foresee=known.foresee,
                running=known.running if own else NOTHING_RUNS,
                replanned=known.replanned if own else False,
                much=known.much,
                metric=known.metric,
                search=self._search(bound, found.plan, found.offers),
                offers=found.offers,
            )
        units = column_units(logical) if found.used else bundle.units
        return replace(bundle, units=units if any(units) else ())

    def over_rows(
        self,
        bundle: FragmentBundle,
        found: SharedPlan,
        run: str = "",
        may_read: Allowed | None = None,
    ) -> tuple[FragmentBundle, tuple[Found, ...]]:
        """Return a bundle whose selections of sources are computed from rows that are there."""
        if found.is_there or self.sharing.strategy == Strategy.OFF or why_alone(bundle):
            return bundle, found.used
        may_read = may_read or self.may_read

        def allowed(offer: Offer) -> bool:
            return may_read(offer) and (not run or is_older(offer.run, run))

        whole = self.query.whole_changes
        bundle = delivered_once(bundle, self.planning.statistics, whole_changes=whole)
        read = rows_of_others(
            bundle,
            self.sharing.index,
            allowed,
            self.sharing.rows,
            canonical=self.sharing.strategy.is_canonical,
            whole_changes=whole,
        )
        if not read.found:
            return bundle, found.used
        offers = {each.offer.name: each.offer for each in read.found.values()}
        answers = {name: each.plan for name, each in read.found.items()}
        bundle = reading(bundle, answers, offers, read.told)
        return bundle, (*found.used, *read.found.values())

    def is_delivered(self, bundle: FragmentBundle, name: str, but: Container[str]) -> bool:
        """Return whether another run has the rows of a fragment of sources at the base already.

        `but` are runs that do not count.
        """
        fragment = bundle.fragment(name)
        if not fragment.consumer or any(
            isinstance(n, RemoteSource) for n in walk_plan(fragment.plan)
        ):
            return False
        alike = self.sharing.index.of_form(canonical_plan(fragment.plan).form)
        return any(
            offer.plan == fragment.plan
            and offer.run not in but
            and self.may_read(offer)
            and delivered_at(offer.bundle.fragment(offer.fragment)) == delivered_at(fragment)
            for offer in alike
        )
