"""The peer Pathway, in an environment of its own: a trace on standard input, figures on output.

Run with the Python of an environment that has `pathway` (1.6 GB); nothing of Pando is imported.
Every update is committed alone; the links go out beside the view, so that an update which changes
no row of the view is seen to be finished as well.

Input: JSON {"load": [[src, dst, cost], ...], "insert": [...], "delete": [...], "cap": seconds}.
"""

import json
import os
import sys
import threading
import time
from typing import Any

os.environ.setdefault("PATHWAY_DISABLE_PROGRESS", "1")


def main() -> None:
    """Run the trace and print the milliseconds of every update."""
    import pathway as pw  # noqa: PLC0415

    trace = json.load(sys.stdin)
    finished = threading.Event()
    took: dict[str, list[float]] = {"insert": [], "delete": []}
    rows: dict[tuple[str, str], int] = {}

    class Feed(pw.io.python.ConnectorSubject):  # type: ignore[misc,unused-ignore]
        def run(self) -> None:
            for source, target, _ in trace["load"]:
                self.next(u=source, v=target)
            self._wait_for_commit()
            for phase in ("insert", "delete"):
                end = time.perf_counter() + trace["cap"]
                for source, target, _ in trace[phase]:
                    start = time.perf_counter()
                    change = self.next if phase == "insert" else self.delete
                    change(u=source, v=target)
                    self._wait_for_commit()
                    took[phase].append((time.perf_counter() - start) * 1_000)
                    if time.perf_counter() > end:
                        break

        def _wait_for_commit(self) -> None:
            finished.clear()
            self.commit()
            if not finished.wait(60):
                raise SystemExit("no answer within 60 s")

    class Link(pw.Schema):  # type: ignore[misc,unused-ignore]
        u: str = pw.column_definition(primary_key=True)
        v: str = pw.column_definition(primary_key=True)

    def step(reach: Any, links: Any, start: Any) -> dict[str, Any]:
        more = links.join(reach, links.v == reach.x).select(x=links.u, z=reach.z)
        both = pw.Table.concat_reindex(start, more)
        closed = both.groupby(both.x, both.z).reduce(both.x, both.z)
        return {"reach": closed.with_id_from(pw.this.x, pw.this.z)}

    links = pw.io.python.read(Feed(session_type="upsert"), schema=Link, autocommit_duration_ms=None)
    base = links.groupby(links.u, links.v).reduce(x=links.u, z=links.v)
    start = base.with_id_from(pw.this.x, pw.this.z)
    view = pw.iterate(step, reach=pw.iterate_universe(start), links=links, start=start).reach
    echo = links.select(x="echo " + links.u, z=links.v)

    def on_change(key: Any, row: dict[str, str], time: int, is_addition: bool) -> None:  # noqa: ARG001
        if not row["x"].startswith("echo "):
            pair = (row["x"], row["z"])
            rows[pair] = rows.get(pair, 0) + (1 if is_addition else -1)

    pw.io.subscribe(
        pw.Table.concat_reindex(view, echo),
        on_change=on_change,
        on_time_end=lambda _time: finished.set(),
    )
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    complete = all(len(took[phase]) == len(trace[phase]) for phase in took)
    count = sum(1 for number in rows.values() if number)
    print(json.dumps({**took, "rows": count if complete else None}))


if __name__ == "__main__":
    main()
