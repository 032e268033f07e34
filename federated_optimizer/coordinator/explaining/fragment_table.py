"""EXPLAIN of what fragments send: estimated and measured side by side, as text and as data."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from federated_optimizer.coordinator.explaining.alternatives_text import number_text
from federated_optimizer.coordinator.explaining.measured_fragments import MeasuredFragment
from federated_optimizer.costs.fragment_estimates import FragmentEstimate
from federated_optimizer.cutting.bundle_explain import READ
from federated_optimizer.cutting.fragment_methods import method_of
from streamsql.wire.fragments import Fragment, FragmentBundle

TOLERANCE = 1.25
"""Factor by which a measurement may differ from an estimate that says to be exact."""

UNKNOWN = "-"
"""A number that nobody knows."""

BEYOND = "!"
"""Mark of a measurement outside of the estimate's range."""

QUANTITIES = {
    "rows/s": "rows_per_second",
    "messages/s": "messages_per_second",
    "bytes/s": "bytes_per_second",
    "ms": "milliseconds",
}
"""Columns of the table, with their names in data."""

_NOTHING_SENT = [UNKNOWN] * len(QUANTITIES)

Estimates = Mapping[str, FragmentEstimate]
Measurements = Mapping[str, MeasuredFragment]


def estimates_table(bundle: FragmentBundle, estimates: Estimates) -> str:
    """Return a line per fragment with what it is expected to send."""
    head = ["fragment", "at", *QUANTITIES, "range of bytes/s", "method"]
    rows = []
    for fragment in bundle.own:
        estimate = estimates[fragment.id]
        low, high = number_text(estimate.cost.low), number_text(estimate.cost.high)
        numbers = [_text(value) for value in _estimated(estimate).values()]
        spread = f"{low} to {high}"
        rows.append([fragment.id, _place(fragment), *numbers, spread, method_of(fragment, bundle)])
    rows.extend([f.id, _place(f), *_NOTHING_SENT, "", READ] for f in bundle.fed)
    return "\n".join(_aligned([head, *rows]))


def measured_table(
    bundle: FragmentBundle, estimates: Estimates, measured: Measurements
) -> list[str]:
    """Return a line per fragment with estimates and measurements, and lines on them."""
    head = ["fragment", "at"]
    for name in QUANTITIES:
        head += [name, "measured"]
    rows = []
    for fragment in bundle.own:
        cells = [fragment.id, _place(fragment)]
        expected = _estimated(estimates[fragment.id])
        found = _measured(measured.get(fragment.id))
        beyond = _beyond(estimates[fragment.id], measured.get(fragment.id))
        for name in QUANTITIES.values():
            mark = BEYOND if name in beyond else ""
            cells += [_text(expected[name]), _text(found[name]) + mark]
        rows.append([*cells, method_of(fragment, bundle)])
    rows.extend([f.id, _place(f), *_NOTHING_SENT, *_NOTHING_SENT, READ] for f in bundle.fed)
    seconds = max((each.seconds for each in measured.values()), default=0.0)
    lines = _aligned([[*head, "method"], *rows])
    if seconds:
        lines.append(f"Measured over the last {seconds:,.0f} s.")
    else:
        lines.append("No rates are measured yet: sites have counted for less than a second.")
    lines.extend(_notes(bundle, estimates, measured))
    lines.extend(_sent(bundle, measured))
    return lines


def rate_words(
    bundle: FragmentBundle, estimates: Estimates, measured: Measurements | None = None
) -> dict[str, str]:
    """Return in words what fragments send to other sites, by fragment: labels of a graph."""
    found = {}
    for fragment in bundle.fragments:
        expected = _rates(_estimated(estimates[fragment.id]))
        if measured is None:
            found[fragment.id] = f"about {expected}"
        else:
            counted = _rates(_measured(measured.get(fragment.id)))
            found[fragment.id] = f"{counted} (estimated {expected})"
    return found


def _rates(values: Mapping[str, float | None]) -> str:
    rows, size = _text(values["rows_per_second"]), _text(values["bytes_per_second"])
    return f"{rows} rows/s, {size} bytes/s"


def estimate_data(estimate: FragmentEstimate) -> dict[str, Any]:
    """Return an estimate as plain data."""
    return {
        **{name: _rounded(value) for name, value in _estimated(estimate).items()},
        "least_bytes_per_second": _rounded(estimate.cost.low),
        "most_bytes_per_second": _rounded(estimate.cost.high),
        "factor": _rounded(estimate.factor),
        "assumed": list(estimate.assumed),
    }


def measured_data(
    estimate: FragmentEstimate, measured: MeasuredFragment | None
) -> dict[str, Any] | None:
    """Return a measurement as plain data; None: nothing is known."""
    if measured is None:
        return None
    beyond = _beyond(estimate, measured)
    sent = {name: asdict(measured)[f"sent_{name}"] for name in ("rows", "messages", "bytes")}
    return {
        **{name: _rounded(value) for name, value in _measured(measured).items()},
        "seconds": _rounded(measured.seconds),
        "beyond": {name: _rounded(ratio) for name, ratio in beyond.items()},
        "sent": sent,
        "run": measured.run or None,
    }


def _estimated(estimate: FragmentEstimate) -> dict[str, float | None]:
    cost = estimate.cost
    values = (estimate.rows, cost.messages, cost.bytes, cost.milliseconds)
    return dict(zip(QUANTITIES.values(), values, strict=True))


def _measured(measured: MeasuredFragment | None) -> dict[str, float | None]:
    found = measured or MeasuredFragment()
    values = (found.rows, found.messages, found.bytes, found.milliseconds)
    return dict(zip(QUANTITIES.values(), values, strict=True))


def _beyond(
    estimate: FragmentEstimate, measured: MeasuredFragment | None
) -> dict[str, float | None]:
    """Return the quantities outside of the estimate's range, with measurement by estimate.

    None is the ratio to an estimate of 0. Times are not compared: they have no range.
    """
    expected, found = _estimated(estimate), _measured(measured)
    factor = max(estimate.factor, TOLERANCE)
    if measured is not None and measured.messages == 0:
        due = estimate.cost.messages / factor * measured.seconds
        if 0 < due < 1:  # nothing came, and within so few seconds nothing had to
            return {}
    beyond: dict[str, float | None] = {}
    for name in ("rows_per_second", "messages_per_second", "bytes_per_second"):
        guess, truth = expected[name], found[name]
        if guess is None or truth is None:
            continue
        if not guess:
            if truth:
                beyond[name] = None
        elif not guess / factor <= truth <= guess * factor:
            beyond[name] = truth / guess
    return beyond


def _notes(bundle: FragmentBundle, estimates: Estimates, measured: Measurements) -> Iterable[str]:
    """Yield a line per measurement outside of its estimate's range."""
    words = {data: shown for shown, data in QUANTITIES.items()}
    for fragment in bundle.fragments:
        estimate, found = estimates[fragment.id], measured.get(fragment.id)
        expected = _estimated(estimate)
        factor = max(estimate.factor, TOLERANCE)
        for name, ratio in _beyond(estimate, found).items():
            guess = expected[name] or 0.0
            spread = f"{number_text(guess / factor)} to {number_text(guess * factor)}"
            times = "more than" if ratio is None else f"{number_text(ratio)} times"
            if ratio == 0:
                times = "nothing instead of"
            yield f"{BEYOND} {fragment.id} {words[name]}: {times} the estimate, which says {spread}"


def _sent(bundle: FragmentBundle, measured: Measurements) -> Iterable[str]:
    """Yield what fragments have sent since the query began to read them, those of a run a line."""
    fed = {feed.run for feed in bundle.feeds}
    runs: dict[str, list[str]] = {}
    for fragment in bundle.fragments:
        found = measured.get(fragment.id)
        if found is not None and _is_sending(fragment):
            runs.setdefault(found.run, []).append(
                f"{fragment.id} {found.sent_rows:,} rows, {found.sent_messages:,} messages, "
                f"{found.sent_bytes:,} bytes"
            )
    for run, counts in runs.items():
        since = f" to read run {run}" if run else ""
        others = ", which other queries read, too" if run in fed else ""
        yield f"Sent since this query began{since}{others}: {'; '.join(counts)}"


def _is_sending(fragment: Fragment) -> bool:
    return not fragment.consumer or set(fragment.destinations) != set(fragment.sites)


def _place(fragment: Fragment) -> str:
    if len(fragment.sites) == 1:
        return fragment.sites[0]
    return f"{len(fragment.sites)} {'gateways' if fragment.engine == 'gateway' else 'sites'}"


def _text(value: float | None) -> str:
    return UNKNOWN if value is None else number_text(value)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines; numbers stand to the right, the first two and the last column left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    last = len(widths) - 1
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if place in (0, 1, last) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines
