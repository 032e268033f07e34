"""EXPLAIN ALTERNATIVES: the plans of a query with their costs, as text and as data."""

from collections.abc import Sequence
from typing import Any

from federated_optimizer.costs.cost import Cost
from federated_optimizer.cutting.bundle_explain import SCHEMA_VERSION
from federated_optimizer.search.choosing import Alternatives, Listed
from federated_optimizer.search.turning_facts import MOST_PLANS, Turn, Varied


def alternatives_text(found: Alternatives, turns: Sequence[Turn] = ()) -> str:
    """Return a line a plan, the cheapest first, and which is taken; times where they differ."""
    times = [f"{each.cost.milliseconds:.0f}" for each in found.listed]
    wide = 6 if len(set(times)) > 1 else 0
    header = f"{'plan':>6}{'bytes/s':>10}  {'range':<21}{'messages/s':>10}"
    lines = [f"{header}{'ms':>{wide}}  method" if wide else f"{header}  method"]
    for each, time in zip(found.listed, times, strict=True):
        until = f"{time:>{wide}}" if wide else ""
        lines.append(_line(each, until, chosen=each.number == found.chosen))
    lines.append(f"Chosen: plan {found.chosen}, because {found.why}.")
    lines.extend(f"Plan {turn.plan} {turn_text(turn, found.chosen)}." for turn in turns)
    if found.left_out:
        lines.append(f"Left out: {found.left_out:,} other plans.")
    lines.extend(f"Not possible: {reason}." for reason in found.refused)
    if found.assumed:
        lines.append("Assumed: " + "; ".join(found.assumed))
    return "\n".join(lines)


def rejected_lines(found: Alternatives, turns: Sequence[Turn]) -> list[str]:
    """Return a line for the chosen plan, and one for each of the cheapest rejected ones."""
    chosen = next(each for each in found.listed if each.number == found.chosen)
    lines = [
        f"Plan {found.chosen} of {len(found.listed) + found.left_out:,}: {_price(chosen)}, "
        f"because {found.why}"
    ]
    turning = {turn.plan: turn for turn in turns}
    rejected = [each for each in found.listed if each.number != found.chosen][:MOST_PLANS]
    for each in rejected:
        turn = turning.get(each.number)
        why = "" if turn is None else f"; {turn_text(turn, found.chosen)}"
        lines.append(f"  rejected: plan {each.number}: {_price(each)}: {each.words}{why}")
    return lines


def turn_text(turn: Turn, chosen: int) -> str:
    """Return at which value of a fact a plan would be taken, or would cost less, in words."""
    more = "more" if turn.value > turn.now else "less"
    would = "would be taken" if turn.taken else f"would cost less than plan {chosen}"
    assumed = "assumed" if turn.assumed else "now"
    scale = 100 if turn.varied == Varied.SHARE else 1
    value, now = number_text(scale * turn.value), number_text(scale * turn.now)
    if turn.varied == Varied.SHARE:
        fact = f"{more} than {value} % of {turn.subject} passed {turn.predicate}"
        return f"{would} if {fact} ({assumed} {now} %)"
    if turn.varied == Varied.ROWS:
        few = "more" if more == "more" else "fewer"
        return f"{would} if {turn.subject} had {few} than {value} rows ({assumed} {now})"
    fact = f"{turn.subject} changed {more} than {value} rows a second"
    return f"{would} if {fact} ({assumed} {now})"


def alternatives_data(found: Alternatives, turns: Sequence[Turn] = ()) -> dict[str, Any]:
    """Return the plans as plain data."""
    return {
        "version": SCHEMA_VERSION,
        "chosen": found.chosen,
        "why": found.why,
        "left_out": found.left_out,
        "assumed": list(found.assumed),
        "refused": list(found.refused),
        "plans": [
            {"plan": each.number, "method": each.words, **_cost_data(each.cost)}
            for each in found.listed
        ],
        "turns": [
            {
                "plan": turn.plan,
                "fact": str(turn.varied),
                "source": turn.subject,
                "condition": turn.predicate or None,
                "now": _digits(turn.now),
                "value": _digits(turn.value),
                "assumed": turn.assumed,
                "taken": turn.taken,
                "text": turn_text(turn, found.chosen),
            }
            for turn in turns
        ],
    }


def _digits(value: float) -> float:
    return float(f"{value:.4g}")


def _price(listed: Listed) -> str:
    cost = listed.cost
    spread = f"{number_text(cost.low)} to {number_text(cost.high)}"
    return f"{number_text(cost.bytes)} bytes/s ({spread})"


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
