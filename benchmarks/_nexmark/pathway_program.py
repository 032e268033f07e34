"""Nexmark in Pathway, in an environment of its own: events on standard input, figures on output.

Run with the Python of an environment that has `pathway`; nothing of Pando is imported. The kinds of
events share one connector, because every batch is committed as one. An echo of the batch's number
goes out beside the view, so that a batch which changes no row is seen to be finished as well.

Input: JSON {"query": name, "batches": [[event, ...], ...], "timed": [first, one past the last]},
an event being [kind, i0, i1, i2, ts, expires, s0, s1, s2].
"""

import json
import os
import sys
import threading
import time
from typing import Any

os.environ.setdefault("PATHWAY_DISABLE_PROGRESS", "1")
PERSON, AUCTION, BID = 0, 1, 2


def main() -> None:
    """Run the batches and print the seconds that each took."""
    import pathway as pw  # noqa: PLC0415

    given = json.load(sys.stdin)
    finished = threading.Event()
    took: list[float] = []
    rows: dict[str, int] = {}
    names = ("kind", "i0", "i1", "i2", "ts", "expires", "s0", "s1", "s2")

    class Feed(pw.io.python.ConnectorSubject):  # type: ignore[misc,unused-ignore]
        def run(self) -> None:
            for batch in given["batches"]:
                start = time.perf_counter()
                finished.clear()
                for event in batch:
                    self.next(**dict(zip(names, event, strict=True)))
                self.commit()
                if not finished.wait(300):
                    raise SystemExit("no answer within 300 s")
                took.append(time.perf_counter() - start)

    class Event(pw.Schema):  # type: ignore[misc,unused-ignore]
        kind: int
        i0: int
        i1: int
        i2: int
        ts: int
        expires: int
        s0: str
        s1: str
        s2: str

    feed = pw.io.python.read(Feed(), schema=Event, autocommit_duration_ms=None)
    view = _view(pw, given["query"], feed)

    def on_change(key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:  # noqa: ARG001
        shown = repr(tuple(row.values()))
        rows[shown] = rows.get(shown, 0) + (1 if is_addition else -1)

    pw.io.subscribe(view, on_change=on_change)
    pw.io.subscribe(
        feed.reduce(count=pw.reducers.count()),
        on_change=lambda **_: None,
        on_time_end=lambda _time: finished.set(),
    )
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    first, last = given["timed"]
    print(json.dumps({"seconds": took[first:last], "rows": sum(rows.values())}))


def _view(pw: Any, query: str, feed: Any) -> Any:
    """Return the query's table."""
    person = feed.filter(feed.kind == PERSON)
    auction = feed.filter(feed.kind == AUCTION)
    bid = feed.filter(feed.kind == BID)
    match query:
        case "q1":
            return bid.select(bid.i0, bid.i1, price=0.908 * bid.i2, ts=bid.ts)
        case "q2":
            return bid.filter(bid.i0 % 123 == 0).select(pw.this.i0, pw.this.i2)
        case "q3":
            wanted = auction.filter(auction.i2 == 10)
            near = person.filter((person.s2 == "OR") | (person.s2 == "ID") | (person.s2 == "CA"))
            joined = wanted.join(near, wanted.i1 == near.i0)
            return joined.select(near.s0, near.s1, near.s2, wanted.i0)
        case "q4":
            joined = auction.join(bid, auction.i0 == bid.i0).select(
                item=auction.i0,
                category=auction.i2,
                price=bid.i2,
                good=(bid.ts >= auction.ts) & (bid.ts <= auction.expires),
            )
            final = joined.filter(pw.this.good).groupby(pw.this.item, pw.this.category)
            final = final.reduce(pw.this.category, price=pw.reducers.max(pw.this.price))
            return final.groupby(pw.this.category).reduce(
                pw.this.category, price=pw.reducers.avg(pw.this.price)
            )
        case "q12":
            windowed = bid.select(bid.i1, start=bid.ts // 10_000_000)
            return windowed.groupby(pw.this.i1, pw.this.start).reduce(
                pw.this.i1, pw.this.start, num=pw.reducers.count()
            )
        case "q17":
            low = bid.select(bid.i0, bid.i2, low=pw.cast(int, bid.i2 < 10_000))
            return low.groupby(pw.this.i0).reduce(
                pw.this.i0,
                total=pw.reducers.count(),
                low=pw.reducers.sum(pw.this.low),
                least=pw.reducers.min(pw.this.i2),
                most=pw.reducers.max(pw.this.i2),
                average=pw.reducers.avg(pw.this.i2),
                volume=pw.reducers.sum(pw.this.i2),
            )
        case "q20":
            wanted = auction.filter(auction.i2 == 10)
            joined = bid.join(wanted, bid.i0 == wanted.i0)
            return joined.select(bid.i0, bid.i1, bid.i2, bid.ts, wanted.s0, seller=wanted.i1)
        case _:
            raise SystemExit(f"no program for {query}")


if __name__ == "__main__":
    main()
