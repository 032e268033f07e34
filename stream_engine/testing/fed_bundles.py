"""Bundles that read the results of other bundles, with copies of what computes these."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from streamsql.algebra.operators import Plan, RemoteSource, Scan, transform_up
from streamsql.wire.fragments import Engine, Feed, Fragment, FragmentBundle

ROOT = "f0"
"""The fragment that gives the result of every bundle made here."""
BASE = ("base",)


@dataclass(frozen=True, slots=True)
class Leaves:
    """The leaves of plans over results and over sources of gateways, as scans.

    Attributes:
        owners: Bundles whose result is read, by the name of the scan that stands for it.
        gateways: Sites of all other scans.
    """

    owners: Mapping[str, FragmentBundle]
    gateways: tuple[str, ...]


def bundle_over(query: str, plan: Plan, leaves: Leaves, *, silent: bool = False) -> FragmentBundle:
    """Return a bundle that computes a plan at the base site, fed with every result that it reads.

    Args:
        query: The name of the bundle.
        plan: Scans stand for results and for what gateways send; the same scan is read once.
        leaves: What they are.
        silent: Whether the bundle is.
    """
    fragments: dict[str, Fragment] = {}
    feeds: list[Feed] = []

    def read(node: Plan) -> Plan:
        if not isinstance(node, Scan):
            return node
        owner = leaves.owners.get(node.source)
        name = f"{node.source}.{ROOT}" if owner else node.source
        if name not in fragments and owner is not None:
            fragments.update((f.id, f) for f in copies(owner, node.source, ROOT))
            feeds.append(Feed(name, owner.query, owner.version, ROOT))
        elif name not in fragments:
            fragments[name] = Fragment(name, Engine.GATEWAY, node, leaves.gateways, ROOT, BASE)
        return RemoteSource(name, node.columns)

    root = transform_up(plan, read)
    fragments[ROOT] = Fragment(ROOT, Engine.BASE, root, BASE)
    return FragmentBundle(
        query, 1, tuple(fragments.values()), root.schema, feeds=tuple(feeds), silent=silent
    )


def copies(owner: FragmentBundle, prefix: str, consumer: str) -> Sequence[Fragment]:
    """Return all fragments of a bundle under other ids, its result sent to another fragment."""

    def renamed(node: Plan) -> Plan:
        if isinstance(node, RemoteSource):
            return replace(node, fragment=f"{prefix}.{node.fragment}")
        return node

    return [
        replace(
            fragment,
            id=f"{prefix}.{fragment.id}",
            plan=transform_up(fragment.plan, renamed),
            consumer=f"{prefix}.{fragment.consumer}" if fragment.consumer else consumer,
            destinations=fragment.destinations if fragment.consumer else fragment.sites,
        )
        for fragment in owner.fragments
    ]


def without(bundle: FragmentBundle, run: str) -> FragmentBundle:
    """Return the next version of a bundle, which computes itself what another one fed it."""
    feeds = tuple(feed for feed in bundle.feeds if feed.run != run)
    return replace(bundle, version=bundle.version + 1, feeds=feeds)


def fed_again(bundle: FragmentBundle, owner: FragmentBundle) -> FragmentBundle:
    """Return the next version of a bundle, which reads another version of a bundle."""
    feeds = [
        replace(feed, version=owner.version) if feed.run == owner.query else feed
        for feed in bundle.feeds
    ]
    return replace(bundle, version=bundle.version + 1, feeds=tuple(feeds))
