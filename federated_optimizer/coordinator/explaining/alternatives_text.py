"""EXPLAIN ALTERNATIVES: the plans of a query with their costs, as text and as data."""

from typing import Any

from federated_optimizer.costs.cost import Cost
from federated_optimizer.search.choosing import Alternatives, Listed

FORMAT_VERSION = 2


def alternatives_text(found: Alternatives) -> str:
    """Return a line a plan, the cheapest first, and which is taken; times where they differ."""
    times = [f"{each.cost.milliseconds:.0f}" for each in found.listed]
    wide = 6 if len(set(times)) > 1 else 0
    header = f"{'plan':>6}{'bytes/s':>10}  {'range':<21}{'messages/s':>10}"
    lines = [f"{header}{'ms':>{wide}}  method" if wide else f"{header}  method"]
    for each, time in zip(found.listed, times, strict=True):
        until = f"{time:>{wide}}" if wide else ""
        lines.append(_line(each, until, chosen=each.number == found.chosen))
    lines.append(f"Chosen: plan {found.chosen}, because {found.why}.")
    if found.left_out:
        lines.append(f"Left out: {found.left_out:,} other plans.")
    lines.extend(f"Not possible: {reason}." for reason in found.refused)
    if found.assumed:
        lines.append("Assumed: " + "; ".join(found.assumed))
    return "\n".join(lines)


def alternatives_data(found: Alternatives) -> dict[str, Any]:
    """Return the plans as plain data; `format` grows with every change of this shape."""
    return {
        "format": FORMAT_VERSION,
        "chosen": found.chosen,
        "why": found.why,
        "left_out": found.left_out,
        "assumed": list(found.assumed),
        "refused": list(found.refused),
        "plans": [
            {"plan": each.number, "method": each.words, **_cost_data(each.cost)}
            for each in found.listed
        ],
    }


def _line(listed: Listed, until: str, *, chosen: bool) -> str:
    cost = listed.cost
    mark = "*" if chosen else " "
    spread = f"{number_text(cost.low)} to {number_text(cost.high)}"
    return (
        f"{mark}{listed.number:>5,}{number_text(cost.bytes):>10}  {spread:<21}"
        f"{number_text(cost.messages):>10}{until}  {listed.words}"
    ).rstrip()


def number_text(value: float) -> str:
    """Return two digits of a number.

    Examples:
        >>> number_text(0.0), number_text(0.0414), number_text(3.04), number_text(1234.0)
        ('0', '0.041', '3', '1,200')
    """
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"


def _cost_data(cost: Cost) -> dict[str, float]:
    return {
        "bytes_per_second": round(cost.bytes, 3),
        "least_bytes_per_second": round(cost.low, 3),
        "most_bytes_per_second": round(cost.high, 3),
        "messages_per_second": round(cost.messages, 3),
        "milliseconds": round(cost.milliseconds, 1),
    }
