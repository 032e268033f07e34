"""The runs whose sites compute the fragments of a bundle that is fed."""

from collections.abc import Callable

from streamsql.algebra.operators import RemoteSource, walk_plan
from streamsql.wire.fragments import Fragment, FragmentBundle

RunFragment = tuple[str, str]
"""A run and the id of a fragment there."""


def run_fragments(
    bundle: FragmentBundle, bundle_of: Callable[[str], FragmentBundle | None]
) -> dict[str, RunFragment]:
    """Return, by fragment of a bundle, the run and the fragment there that sites compute for it.

    What is fed, and all below it, is computed for the bundle that feeds, or for one that feeds that
    one, and so on. Of a feeder that is not there as planned nothing is known.

    Args:
        bundle: Of a run.
        bundle_of: Returns the bundle of another run, or None.
    """
    found = {fragment.id: (bundle.query, fragment.id) for fragment in bundle.own}
    for feed in bundle.feeds:
        other = bundle_of(feed.run)
        if other is None or other.version != feed.version:
            continue
        there = run_fragments(other, bundle_of)
        waiting = [(feed.fragment, feed.source)]
        while waiting:
            mine, theirs = waiting.pop()
            if theirs in there:
                found.setdefault(mine, there[theirs])
            # A copy has the plan of the original, but for the ids of what it reads.
            pairs = (_leaves(bundle.fragment(mine)), _leaves(other.fragment(theirs)))
            waiting.extend(zip(*pairs, strict=True))
    return found


def _leaves(fragment: Fragment) -> list[str]:
    return [n.fragment for n in walk_plan(fragment.plan) if isinstance(n, RemoteSource)]
