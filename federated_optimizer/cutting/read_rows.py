"""Bundles that read rows of other runs in the place of fragments of their own."""

from collections.abc import Mapping

from msgspec.structs import replace

from federated_optimizer.cutting.fed_fragments import FedFragments, read_by, renamed
from federated_optimizer.sharing.delivered_rows import numbered
from federated_optimizer.sharing.node_offers import Offer
from streamsql.algebra.operators import Plan, RemoteSource, transform_up
from streamsql.wire.fragments import FragmentBundle


def reading(
    bundle: FragmentBundle,
    answers: Mapping[str, Plan],
    offers: Mapping[str, Offer],
    told: Mapping[str, Plan],
) -> FragmentBundle:
    """Return a bundle without some fragments, whose readers compute their rows from other runs'.

    Args:
        bundle: As it was cut.
        answers: Plans over leaves of offers, by the fragment that they replace.
        offers: By the name of their leaves.
        told: What sites send in the place of a fragment, by its id; answers read it under that.
    """

    def put(node: Plan) -> Plan:
        return answers.get(node.fragment, node) if isinstance(node, RemoteSource) else node

    kept = [f for f in bundle.fragments if f.id not in answers]
    made = [replace(f, plan=transform_up(f.plan, put)) for f in kept]
    made += [replace(f, plan=told[f.id]) for f in bundle.fragments if f.id in told]
    count = len(bundle.fragments)

    def next_id() -> str:
        nonlocal count
        count += 1
        return f"f{count - 1}"

    fed = FedFragments(offers, next_id)
    ids: dict[str, str] = {}
    copies = []
    for fragment in made:
        for leaf in read_by(fragment.plan):
            if leaf in offers and leaf not in ids:
                ids[leaf] = next_id()
                copies += fed.copied(leaf, ids[leaf], fragment.id)
    known = {f.id: f.id for f in (*made, *copies)} | ids
    fragments = tuple(replace(f, plan=renamed(f.plan, known)) for f in (*made, *copies))
    feeds = (*bundle.feeds, *fed.feeds)
    return numbered(replace(bundle, fragments=fragments, feeds=feeds))
