"""Savings of a plan within ten minutes, against the cost of the move to it."""

from federated_optimizer.coordinator.adaptation.bundle_choice import Work
from federated_optimizer.coordinator.adaptation.filled_runs import Alike
from federated_optimizer.coordinator.adaptation.reconsidered import Reconsidered
from federated_optimizer.costs.effort import Effort
from streamsql.algebra.metrics import BY_BYTES, Metric
from streamsql.data.types import MICROSECONDS

HORIZON_SECONDS = 600.0
"""Time in which a change of plan has to save what it costs."""


def why_not_worth(found: Reconsidered, alike: Alike) -> str:
    """Return why a plan is not worth a move, in words; empty: it is.

    `alike` says how long both plans run beside each other.
    """
    assert found.before is not None  # noqa: S101  (looked at by the caller)
    if found.work is not None:
        return why_no_work(found.work)
    value = found.weighing.value
    before, after = (value(plan.cost) - value(plan.fed) for plan in (found.before, found.after))
    filling = (
        value(found.filling) + after * alike.microseconds / MICROSECONDS
    )  # both send meanwhile
    return why_no_gain(before - after, filling, found.weighing.metric)


def why_no_gain(gain: float, filling: float, metric: Metric = BY_BYTES) -> str:
    """Return why a plan is not worth a move by the metric, in words; empty: it is.

    Args:
        gain: Of it over what runs, a second.
        filling: Once.
        metric: By which both are.
    """
    saved = gain * HORIZON_SECONDS
    if saved > filling:
        return ""
    unit = "bytes" if metric == BY_BYTES else f"by {metric}"
    return (
        f"filling the other plan takes {filling:,.0f} {unit}; it saves "
        f"{max(saved, 0):,.0f} in {HORIZON_SECONDS:.0f} s"
    )


def why_no_work(work: Work) -> str:
    """Return why a plan is not worth a move for the work it saves, in words; empty: it is."""
    saved = (work.before.value - work.after.value) * HORIZON_SECONDS
    if saved > work.filling:
        return ""
    return (
        f"filling the other plan takes {_milliseconds(work.filling)} of work; it saves "
        f"{_milliseconds(max(saved, 0.0))} in {HORIZON_SECONDS:.0f} s, kept rows counted as work"
    )


def work_saved(work: Work) -> str:
    """Return what a plan saves the sites, in words."""
    return f"it causes {_effort(work.before)}, and {_effort(work.after)} then"


def _effort(effort: Effort) -> str:
    kept = f"{effort.kept / 1_000:,.3g} kB" if effort.kept < 1e6 else f"{effort.kept / 1e6:,.0f} MB"
    return f"{_milliseconds(effort.milliseconds)} of work a second and {kept} of kept rows"


def _milliseconds(value: float) -> str:
    return f"{value:,.0f} ms" if value >= 10 else f"{value:.2g} ms"
