"""The rows of a longer window that a shorter one holds, by the bounds that each site tells."""

from bisect import bisect_left, bisect_right, insort

from typing_extensions import override

from stream_engine.operators.rows.operator import Operator
from streamsql.algebra.operators import Younger
from streamsql.data.delta import Delta, accumulate, add
from streamsql.data.types import Row, Value
from streamsql.errors import InternalError

ROWS, BOUNDS = 0, 1

_NEVER = 2**63
"""Beyond all event times; the negative of it is before them."""

_Bounds = tuple[int, int]
"""Rows with low < event time <= high are in."""

_NOTHING: _Bounds = (_NEVER, _NEVER)


class YoungerOperator(Operator):
    """Rows of several sites, each as long as its event time is within the bounds of its site.

    Rows and bounds have the site that has sent them as one more column behind their own. Rows go,
    or come, when bounds change: these may come before or after the rows that they are about, and
    may be taken back, as when a site dies.

        rows     (5, a, g1) (5, b, g2)
        bounds   (0, -, g1) (0, -, g2)     then (5, -, g1) in place of (0, -, g1)
        output   (5, a) (5, b)             {(5, a): -1}

    State: the rows, by site and event time, and the bounds. Work: O(log times) a changed row, and
    one step per row that enters or leaves with a change of bounds.
    """

    def __init__(self, plan: Younger) -> None:
        self._time = plan.time
        self._rows: dict[str, dict[int, dict[Row, int]]] = {}
        self._times: dict[str, list[int]] = {}
        self._told: dict[str, Delta] = {}

    @override
    def apply(self, port: int, delta: Delta) -> Delta:
        return self._take_rows(delta) if port == ROWS else self._take_bounds(delta)

    @override
    def state_rows(self) -> int:
        return sum(len(rows) for times in self._rows.values() for rows in times.values())

    def _take_rows(self, delta: Delta) -> Delta:
        result: Delta = {}
        time = self._time
        here: Value = None
        low = high = 0
        times: dict[int, dict[Row, int]] = {}
        order: list[int] = []
        for told, weight in delta.items():
            if told[-1] != here:  # rows of one site come in one change: looked up once
                self._drop_empty(here)
                here = _site(told)
                low, high = self._bounds(here)
                times = self._rows.setdefault(here, {})
                order = self._times.setdefault(here, [])
            row = told[:-1]
            ts = row[time]
            if type(ts) is not int:
                raise InternalError("a row of a window shows no event time")
            rows = times.get(ts)
            if rows is None:
                times[ts] = {row: weight}
                insort(order, ts)
            else:
                new = rows.get(row, 0) + weight
                if new:
                    rows[row] = new
                else:
                    del rows[row]
                    if not rows:
                        del times[ts]
                        del order[bisect_left(order, ts)]
            if low < ts <= high:
                new = result.get(row, 0) + weight
                if new:
                    result[row] = new
                else:
                    del result[row]
        self._drop_empty(here)
        return result

    def _drop_empty(self, site: Value) -> None:
        if isinstance(site, str) and not self._times[site]:
            del self._rows[site], self._times[site]

    def _take_bounds(self, delta: Delta) -> Delta:
        changes: dict[str, Delta] = {}
        for told, weight in delta.items():
            changes.setdefault(_site(told), {})[told[:-1]] = weight
        result: Delta = {}
        for site, change in changes.items():
            before = self._bounds(site)
            told_here = self._told.setdefault(site, {})
            accumulate(told_here, change)
            if not told_here:
                del self._told[site]
            after = self._bounds(site)
            self._add_beyond(site, before, after, -1, result)
            self._add_beyond(site, after, before, 1, result)
        return result

    def _bounds(self, site: str) -> _Bounds:
        """Return the bounds of a site; those of one that has told none hold nothing."""
        told = [row for row, weight in self._told.get(site, {}).items() if weight > 0]
        if len(told) != 1:
            return _NOTHING
        ((low, high),) = told
        return (
            low if isinstance(low, int) else -_NEVER,
            high if isinstance(high, int) else _NEVER,
        )

    def _add_beyond(
        self, site: str, inside: _Bounds, outside: _Bounds, sign: int, result: Delta
    ) -> None:
        """Add the rows of a site within some bounds and not within others to a result."""
        low, high = inside
        self._add_between(site, low, min(high, outside[0]), sign, result)
        self._add_between(site, max(low, outside[1]), high, sign, result)

    def _add_between(self, site: str, low: int, high: int, sign: int, result: Delta) -> None:
        order = self._times.get(site)
        if low >= high or not order:
            return
        times = self._rows[site]
        for ts in order[bisect_right(order, low) : bisect_right(order, high)]:
            for row, weight in times[ts].items():
                add(result, row, sign * weight)


def _site(told: Row) -> str:
    site = told[-1]
    if not isinstance(site, str):
        raise InternalError("a row comes without the site that has sent it")
    return site
