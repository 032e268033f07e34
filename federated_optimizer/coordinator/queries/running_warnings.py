"""Warnings of running queries: sources whose rows are missing, and sites that hold windows back."""

from collections.abc import Mapping

from federated_optimizer.coordinator.sites.source_serving import MissingRows
from streamsql.algebra.operators import Scan, SourceKind, walk_plan
from streamsql.data.durations import duration_text
from streamsql.data.types import MICROSECONDS, timestamp_text
from streamsql.wire.fragments import Engine, FragmentBundle
from streamsql.wire.messages import SlowSite


def missing_sources(
    bundle: FragmentBundle, reasons: Mapping[str, Mapping[str, MissingRows]]
) -> tuple[str, ...]:
    """Return a sentence per gateway whose rows are missing, and per stream that none offers.

    Args:
        bundle: The plan.
        reasons: Why rows of declared sources are missing, by source and gateway.
    """
    unserved = tuple(
        _gap(source, site, by[site])
        for source, by in reasons.items()
        for site in sorted(by)
        if site
    )
    missing = {
        node.source
        for fragment in bundle.fragments
        if fragment.engine == Engine.GATEWAY and not fragment.sites
        for node in walk_plan(fragment.plan)
        if isinstance(node, Scan) and node.kind != SourceKind.TABLE
    }
    return unserved + tuple(
        f"no gateway offers source {name} yet" + _because(reasons.get(name.lower(), {}))
        for name in sorted(missing)
    )


def _gap(source: str, site: str, gap: MissingRows) -> str:
    if gap.is_awaited:  # rows of an older definition may count that has the same columns
        return f"{site} does not serve the present definition of source {source}: {gap.reason}"
    return f"rows of source {source} from {site} are missing: {gap.reason}"


def _because(reasons: Mapping[str, MissingRows]) -> str:
    return f": {reasons[''].reason}" if "" in reasons else ""


def slow_sentence(slow: SlowSite, *, offline: bool) -> str:
    """Return who holds windows back, and what to do about it."""
    behind = duration_text(slow.behind * MICROSECONDS)
    cure = (
        "it is offline and will be ignored soon; if it is gone permanently: pando gateway "
        f"remove {slow.site}"
        if offline
        else "it is ignored after it has sent no reading for the idle time of its source (WITH "
        "(idle = …), default one minute); if it sends old times, check its clock (SHOW "
        "GATEWAYS) and its devices"
    )
    return (
        f"windows wait for {slow.site}, whose readings are {behind} behind those of others "
        f"(slow since {timestamp_text(slow.since)}): {cure}"
    )


def left_out(bundle: FragmentBundle) -> tuple[str, ...]:
    """Return a sentence per recursion that does without gateways that are away."""
    return tuple(
        f"recursion {plan.name} runs without {', '.join(plan.without)}, which is offline "
        "for too long"
        for plan in bundle.recursions
        if plan.without
    )


def sources_read_by(bundle: FragmentBundle) -> set[str]:
    """Return the streams and links that a bundle reads, in lower case."""
    return {
        node.source.lower()
        for fragment in bundle.fragments
        for node in walk_plan(fragment.plan)
        if isinstance(node, Scan) and node.kind != SourceKind.TABLE
    }
