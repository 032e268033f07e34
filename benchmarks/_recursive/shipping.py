"""Bytes between 12 sites, by way of maintaining a recursion together.

Every message passes the wire codec; what is counted is its encoded size. Decision diagrams travel
one a row, as the literature counts them, but where it says "packed": the product packs them. The
sites settle to quiescence after every single update, with channels delivered in seeded random
order.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from benchmarks._recursive.targets import Outcome
from benchmarks._recursive.workloads import LinkTrace, closure, w1
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.testing.recursion_ensembles import Ensemble
from stream_engine.testing.recursion_programs import reachable
from streamsql.algebra.choices import Annotations, DiagramOrder, Shipping, Strategy, Way
from streamsql.data.types import Row

SITES = tuple(f"g{number}" for number in range(12))

Owner = Callable[[Row, tuple[str, ...]], str]


def by_number(trace: LinkTrace) -> Owner:
    """Return a placement that deals nodes out one by one, as a hash does."""
    nodes = sorted({node for link in trace.links for node in link[:2]})
    place = {node: number for number, node in enumerate(nodes)}
    return lambda key, sites: sites[place[str(key[0])] % len(sites)]


def by_stub(trace: LinkTrace) -> Owner:
    """Return a placement that keeps the nodes of a stub together."""
    nodes = sorted({node for link in trace.links for node in link[:2]})
    stubs = sorted({node.rpartition("n")[0] or node for node in nodes})
    place = {stub: number for number, stub in enumerate(stubs)}
    return lambda key, sites: sites[
        place[str(key[0]).rpartition("n")[0] or str(key[0])] % len(sites)
    ]


WAYS: dict[str, RecursionOptions] = {
    "dred": RecursionOptions(strategy=Strategy.DRED),
    "lazy BDD": RecursionOptions(
        strategy=Strategy.ABSORPTION, annotations=Annotations.BDD, packed=False
    ),
    "lazy BDD, packed": RecursionOptions(strategy=Strategy.ABSORPTION, annotations=Annotations.BDD),
    "lazy": RecursionOptions(strategy=Strategy.ABSORPTION),
    "witness": RecursionOptions(strategy=Strategy.ABSORPTION, way=Way.WITNESS),
    "flood": RecursionOptions(way=Way.FLOOD),
    "centre": RecursionOptions(way=Way.CENTRE),
}


def shipped(
    trace: LinkTrace, options: RecursionOptions, owner: Owner, *, deletions: int | None = None
) -> dict[str, float]:
    """Return bytes and messages of inserting and of deleting one by one.

    Raises:
        AssertionError: Sites disagree with the closure at the end.
    """
    ensemble = Ensemble(
        reachable(), SITES, replace(options, owner=owner), seed=1, max_steps=100_000_000
    )
    gone = trace.deletions[:deletions]
    found: dict[str, float] = {}
    for phase, sign, links in (("insert", 1, trace.links), ("delete", -1, gone)):
        bytes_before = ensemble.bytes_sent
        for link in links:
            site = owner((link[0],), SITES)
            ensemble.apply(site, 0, {link: sign})
            ensemble.step(site)
            ensemble.run()
        found[f"{phase}_bytes"] = ensemble.bytes_sent - bytes_before
    left = set(trace.links) - set(gone)
    if ensemble.rows() != closure(left):
        raise AssertionError(f"wrong view with {options}")
    return found


def run_shipping(*, quick: bool) -> tuple[dict[str, Any], list[Outcome]]:
    """Return bytes by net, placement and way, and the outcomes B1 to B6."""
    figures: dict[str, Any] = {}
    sparse = w1(200, sparse=True)
    if quick:
        sparse = _shortened(sparse, 60)
    dense = sparse if quick else w1(400)
    for trace in (sparse,) if quick else (dense, sparse):
        owners = {"by number": by_number(trace)}
        if not quick:
            owners["by stub"] = by_stub(trace)
        for placing, owner in owners.items():
            figures[f"{trace.name}, nodes placed {placing}"] = {
                name: shipped(trace, options, owner) for name, options in WAYS.items()
            }
    if not quick:
        figures["240 links, eager"] = _eager(w1(240, sparse=False))
    return figures, _outcomes(figures, dense, sparse)


def _shortened(trace: LinkTrace, links: int) -> LinkTrace:
    """Return the first links of a trace, of which a fifth is deleted again."""
    few = trace.links[:links]
    return LinkTrace(f"{links} links", few, few[: links // 5], trace.nodes)


def _eager(trace: LinkTrace) -> dict[str, dict[str, float]]:
    few = _shortened(trace, 240)
    bdd = RecursionOptions(
        strategy=Strategy.ABSORPTION, annotations=Annotations.BDD, width=1_000_000, packed=False
    )
    ways = {
        "lazy BDD": bdd,
        "eager BDD": replace(bdd, shipping=Shipping.EAGER),
        "eager BDD, arrival order": replace(
            bdd, shipping=Shipping.EAGER, order=DiagramOrder.ARRIVAL
        ),
    }
    return {name: shipped(few, options, by_number(few)) for name, options in ways.items()}


def _outcomes(figures: dict[str, Any], dense: LinkTrace, sparse: LinkTrace) -> list[Outcome]:
    full = figures.get(f"{dense.name}, nodes placed by number")
    thin = figures[f"{sparse.name}, nodes placed by number"]
    eager = figures.get("240 links, eager")

    def total(found: dict[str, float]) -> float:
        return found["insert_bytes"] + found["delete_bytes"]

    found = [Outcome("B4", thin["dred"]["delete_bytes"] / thin["witness"]["delete_bytes"])]
    if full and dense != sparse:
        found += [
            Outcome("B1", full["dred"]["delete_bytes"] / full["witness"]["delete_bytes"]),
            Outcome("B2", total(full["lazy BDD"]) / total(full["witness"])),
        ]
    if eager:
        found += [
            Outcome("B5", total(eager["eager BDD, arrival order"]) / total(eager["eager BDD"])),
            Outcome("B6", total(eager["eager BDD"]) / total(eager["lazy BDD"])),
        ]
    return found
