"""The peer Pathway, in an environment of its own: changes on standard input, answers on output.

Run with the Python of an environment that has `pathway` (1.6 GB); nothing of Pando is imported.
Every change is committed alone; the links go out beside the view, so that an update which changes
no row of the view is seen to be finished as well.

Input, a line each: JSON {"sign": 1 | -1 | 0, "links": [[src, dst, cost], ...]}. Output: a line with
the number of rows of the view, when the change is done.
"""

import json
import os
import sys
import threading
from typing import Any

os.environ.setdefault("PATHWAY_DISABLE_PROGRESS", "1")


def main() -> None:
    """Follow the changes."""
    import pathway as pw  # noqa: PLC0415

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the library prints is no answer
    finished = threading.Event()
    rows: dict[tuple[str, str], int] = {}

    class Feed(pw.io.python.ConnectorSubject):  # type: ignore[misc,unused-ignore]
        def run(self) -> None:
            for line in sys.stdin:
                request = json.loads(line)
                change = self.next if request["sign"] > 0 else self.delete
                for source, target, _ in request["links"]:
                    change(u=source, v=target)
                if request["links"]:
                    self._wait_for_commit()
                answers.write(f"{len(rows)}\n")
                answers.flush()

        def _wait_for_commit(self) -> None:
            finished.clear()
            self.commit()
            if not finished.wait(300):
                raise SystemExit("no answer within 300 s")

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
            count = rows.pop(pair, 0) + (1 if is_addition else -1)
            if count:
                rows[pair] = count

    pw.io.subscribe(
        pw.Table.concat_reindex(view, echo),
        on_change=on_change,
        on_time_end=lambda _time: finished.set(),
    )
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)


if __name__ == "__main__":
    main()
