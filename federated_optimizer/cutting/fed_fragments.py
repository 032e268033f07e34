"""Fragments of other runs in the bundle of a query that reads them: renamed copies, with a feed.

A bundle says the whole computation, so it has all from which the fragment that it reads is
computed in the other run. A feed says that nobody runs these copies for this bundle. What the other
run reads of still others is below that fragment, so it needs no feed of its own.
"""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from federated_optimizer.sharing.node_offers import Offer
from streamsql.algebra.operators import Plan, RemoteSource, transform_up, walk_plan
from streamsql.wire.fragments import Engine, Feed, Fragment


class FedFragments:
    """The copies in one bundle.

    Attributes:
        feeds: In the order in which they were asked for.

    Args:
        offers: By the name of their leaves.
        next_id: Returns ids that the bundle has not given yet.
    """

    def __init__(self, offers: Mapping[str, Offer], next_id: Callable[[], str]) -> None:
        self._offers = offers
        self._next_id = next_id
        self.feeds: list[Feed] = []

    def copied(self, leaf: str, name: str, consumer: str) -> list[Fragment]:
        """Return the fragment that a leaf stands for, and all below it, under new ids.

        Args:
            leaf: The name of the leaf.
            name: The id of the fragment here.
            consumer: The first fragment that reads it.
        """
        offer = self._offers[leaf]
        ids = {offer.fragment: name}
        waiting, found = [offer.fragment], []
        while waiting:
            original = offer.bundle.fragment(waiting.pop(0))
            for below in read_by(original.plan):
                if below not in ids:
                    ids[below] = self._next_id()
                    waiting.append(below)
            found.append(original)
        self.feeds.append(Feed(name, offer.run, offer.bundle.version, offer.fragment))
        return [self._copy(original, offer, ids, consumer) for original in found]

    @staticmethod
    def _copy(original: Fragment, offer: Offer, ids: Mapping[str, str], consumer: str) -> Fragment:
        plan = renamed(original.plan, ids)
        copy = replace(original.computed, id=ids[original.id], plan=plan)
        if original.id != offer.fragment:
            return replace(copy, consumer=ids[first_reader(original, offer, ids)])
        copy = replace(copy, consumer=consumer)
        if original.consumer:  # it delivers to the base, for whoever reads it there
            return copy
        assert original.engine == Engine.BASE  # noqa: S101  (others give no rows to a base site)
        return replace(copy, destinations=original.sites, partition=())


def first_reader(original: Fragment, offer: Offer, ids: Mapping[str, str]) -> str:
    """Return the fragment of a closure that reads a fragment; its `consumer` may be no part."""
    if original.consumer in ids:
        return original.consumer
    return next(name for name in offer.bundle.readers(original.id) if name in ids)


def read_by(plan: Plan) -> tuple[str, ...]:
    """Return the fragments that a plan reads, each once."""
    nodes = walk_plan(plan)
    return tuple(dict.fromkeys(n.fragment for n in nodes if isinstance(n, RemoteSource)))


def renamed(plan: Plan, ids: Mapping[str, str]) -> Plan:
    """Return the plan with other names in its leaves."""

    def change(node: Plan) -> Plan:
        if isinstance(node, RemoteSource):
            return RemoteSource(ids[node.fragment], node.columns)
        return node

    return transform_up(plan, change)
