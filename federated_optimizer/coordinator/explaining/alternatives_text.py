"""EXPLAIN ALTERNATIVES: the plans of a query with their costs, as text and as data."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from federated_optimizer.costs.cost import Cost
from federated_optimizer.costs.weighing import FIELDS, Weighing
from federated_optimizer.cutting.bundle_explain import SCHEMA_VERSION
from federated_optimizer.search.choosing import Alternatives, Listed
from federated_optimizer.search.turning_facts import MOST_PLANS, Turn, Varied
from streamsql.algebra.metrics import Metric, Term


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    width: int
    text: Callable[[Listed], str]


IN_PARTS = (
    "gateways join rows of other gateways or of tables, so that for a moment the answer may show "
    "one part of a change before the other"
)
"""A note on plans with joins in the network."""
_RANGE_WIDTH = 23
_HEADS = {
    Term.BYTES: "bytes/s",
    Term.MESSAGES: "messages/s",
    Term.LATENCY: "ms",
    Term.ENERGY: "energy",
    Term.CPU: "cpu",
    Term.STATE: "state",
    Term.ENGINE: "engine",
}
_UNITS = {
    Term.MESSAGES: "messages/s",
    Term.LATENCY: "ms",
    Term.ENERGY: "microjoules/s",
    Term.CPU: "ms of processor/s",
    Term.STATE: "bytes kept",
    Term.ENGINE: "ms of engines/s",
}
_ALWAYS = (Term.BYTES, Term.MESSAGES)


def alternatives_text(found: Alternatives, turns: Sequence[Turn] = ()) -> str:
    """Return a line a plan, the cheapest first, and which is taken.

    Times are shown where they differ, other costs where the metric weighs them.
    """
    columns = _columns(found)
    head = f"{'plan':>6}" + "".join(_cell(column.name, column.width) for column in columns)
    lines = [f"{head}  method"]
    lines += [_line(each, columns, chosen=each.number == found.chosen) for each in found.listed]
    lines.append(f"Chosen: plan {found.chosen}, because {found.why}.")
    lines.extend(f"Plan {turn.plan} {turn_text(turn, found.chosen)}." for turn in turns)
    in_parts = [str(each.number) for each in found.listed if not each.whole_changes]
    if in_parts:
        plans = "Plan" if len(in_parts) == 1 else "Plans"
        lines.append(f"{plans} {', '.join(in_parts)}: {IN_PARTS}.")
    if found.left_out:
        lines.append(f"Left out: {found.left_out:,} other plans.")
    lines.extend(f"Not possible: {reason}." for reason in found.refused)
    lines.extend(f"Not considered: {reason}." for reason in found.not_considered)
    if found.assumed:
        lines.append("Assumed: " + "; ".join(found.assumed))
    return "\n".join(lines)


def rejected_lines(found: Alternatives, turns: Sequence[Turn]) -> list[str]:
    """Return a line for the chosen plan, and one for each of the cheapest rejected ones."""
    chosen = next(each for each in found.listed if each.number == found.chosen)
    plans, cost = len(found.listed) + found.left_out, _price(chosen, found.metric)
    lines = [f"Plan {found.chosen} of {plans:,}: {cost}, because {found.why}"]
    if not chosen.whole_changes:
        lines.append(f"  {IN_PARTS}")
    turning = {turn.plan: turn for turn in turns}
    rejected = [each for each in found.listed if each.number != found.chosen][:MOST_PLANS]
    for each in rejected:
        turn = turning.get(each.number)
        why = "" if turn is None else f"; {turn_text(turn, found.chosen)}"
        price = _price(each, found.metric)
        lines.append(f"  rejected: plan {each.number}: {price}: {each.words}{why}")
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
    if turn.varied == Varied.DISTINCT:
        few = "more" if more == "more" else "fewer"
        return f"{would} if {turn.subject} had {few} than {value} values ({assumed} {now})"
    fact = f"{turn.subject} changed {more} than {value} rows a second"
    return f"{would} if {fact} ({assumed} {now})"


def alternatives_data(found: Alternatives, turns: Sequence[Turn] = ()) -> dict[str, Any]:
    """Return the plans as plain data."""
    weighing = Weighing(found.metric)
    return {
        "version": SCHEMA_VERSION,
        "metric": str(found.metric),
        "chosen": found.chosen,
        "why": found.why,
        "left_out": found.left_out,
        "assumed": list(found.assumed),
        "refused": list(found.refused),
        "not_considered": list(found.not_considered),
        "plans": [
            {
                "plan": each.number,
                "method": each.words,
                "whole_changes": each.whole_changes,
                "cost": round(weighing.value(each.cost), 3),
                **_cost_data(each.cost),
            }
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


def _price(listed: Listed, metric: Metric) -> str:
    """Return what the metric weighs, and what travels."""
    cost = listed.cost
    spread = f"{number_text(cost.low)} to {number_text(cost.high)}"
    sent = f"{number_text(cost.bytes)} bytes/s ({spread})"
    if metric.only == Term.BYTES:
        return sent
    weighed = number_text(Weighing(metric).value(cost))
    if metric.only is None:
        return f"{weighed} by {metric}, {sent}"
    return f"{number_text(getattr(cost, FIELDS[metric.only]))} {_UNITS[metric.only]}, {sent}"


def _columns(found: Alternatives) -> list[_Column]:
    weighed = {term for term, _ in found.metric.weights}
    shown = [_column(term) for term in Term if _is_shown(term, weighed, found)]
    shown.insert(1, _Column("range", -_RANGE_WIDTH, _range))
    if found.metric.only is None:
        weighing = Weighing(found.metric)
        shown.append(_Column("cost", 10, lambda each: number_text(weighing.value(each.cost))))
    return shown


def _is_shown(term: Term, weighed: set[Term], found: Alternatives) -> bool:
    if term == Term.LATENCY and term not in weighed:
        return len({_time(each) for each in found.listed}) > 1
    return term in _ALWAYS or term in weighed


def _column(term: Term) -> _Column:
    if term == Term.LATENCY:
        return _Column(_HEADS[term], 6, _time)
    field = FIELDS[term]
    return _Column(_HEADS[term], 10, lambda each: number_text(getattr(each.cost, field)))


def _time(listed: Listed) -> str:
    return f"{listed.cost.milliseconds:.0f}"


def _range(listed: Listed) -> str:
    return f"{number_text(listed.cost.low)} to {number_text(listed.cost.high)}"


def _cell(text: str, width: int) -> str:
    """Return a cell: numbers stand at the right, the range at the left behind two blanks."""
    return f"{text:>{width}}" if width > 0 else f"  {text:<{-width - 2}}"


def _line(listed: Listed, columns: list[_Column], *, chosen: bool) -> str:
    mark = "*" if chosen else " "
    line = f"{mark}{listed.number:>5,}"
    for column in columns:
        cell = _cell(column.text(listed), column.width)
        # A number as wide as its column, or wider, fills the blanks that are between columns.
        line += cell if line.endswith(" ") or cell.startswith(" ") else f" {cell}"
    return f"{line}  {listed.words}".rstrip()


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
        "microjoules_per_second": round(cost.energy, 3),
        "cpu_milliseconds_per_second": round(cost.cpu, 3),
        "bytes_kept": round(cost.state),
        "engine_milliseconds_per_second": round(cost.engine, 3),
    }
