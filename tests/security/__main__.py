"""Attack a federation at full length and say what became of it.

python -m tests.security [--messages N] [--requests N] [--seed S] [--out FOLDER]

Every topic is tried by everybody at both brokers; forged messages go to real services at each
broker; each route of the console is tried by everybody. It ends with an error at the first attempt
that does what it may not.
"""

import argparse
import json
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from broker.broker_launch import Preference, find_mosquitto
from tests.broker.laws.secured import FEDERATION, secured_broker
from tests.security.console_attempts import application, asked_by_all, routes_of
from tests.security.console_requests import Requests, closed_in_time, held_open
from tests.security.desk import desk
from tests.security.forging import forge
from tests.security.house import house
from tests.security.wire_attempts import STRANGERS, intrusions, tried_by_all

FILE = "security.json"


def topics(kind: Preference) -> dict[str, Any]:
    """Try every topic at a broker."""
    with tempfile.TemporaryDirectory() as folder, secured_broker(kind, Path(folder)) as broker:
        by_all = [tried_by_all(broker, FEDERATION, version) for version in (4, 5)]
        by_strangers = [intrusions(broker, FEDERATION, stranger) for stranger in STRANGERS]
    wrong = [each for attempts in (*by_all, *by_strangers) for each in attempts.wrong]
    assert wrong == [], wrong
    return {
        "allowed": sum(each.allowed for each in by_all),
        "refused": sum(each.refused for each in (*by_all, *by_strangers)),
        "delivered": sum(each.delivered for each in by_all),
    }


def messages(kind: Preference, number: int, seed: int) -> dict[str, Any]:
    """Forge messages at the services of a federation."""
    with tempfile.TemporaryDirectory() as folder, house(Path(folder), kind) as running:
        return forge(running, number, seed).figures()


def requests(number: int, seed: int) -> dict[str, Any]:
    """Ask a console for every route as everybody, then send it malformed requests."""
    with tempfile.TemporaryDirectory() as folder, desk(Path(folder)) as running:
        routes = routes_of(application(Path(folder)))
        asked = asked_by_all(running, routes)
        assert asked.wrong == [], asked.wrong[:10]
        with held_open(running, 30) as held:
            run = Requests(running, routes, seed).send(number)
            assert run.wrong == [], run.wrong[:10]
            assert closed_in_time(held, 30)
        assert "Traceback" not in running.log()
    counts = {"routes": len(routes), "answered": asked.answered, "refused": asked.refused}
    return counts | run.figures()


def timed(part: Callable[[], dict[str, Any]], name: str) -> dict[str, Any]:
    """Run a part, print its counts, and return them with the seconds it took."""
    began = time.perf_counter()
    counts = part() | {"seconds": round(time.perf_counter() - began, 1)}
    print(f"{name}: {json.dumps(counts)}", flush=True)
    return counts


def main() -> None:
    """Run what is asked for and print the counts."""
    parser = argparse.ArgumentParser(description="Attack a federation at full length")
    parser.add_argument("--messages", type=int, default=1_000_000, help="forged, at each broker")
    parser.add_argument("--requests", type=int, default=100_000, help="to the console")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", type=Path, help=f"folder for {FILE}")
    given = parser.parse_args()
    # Who ends it ends the services that it has started, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    brokers: list[Preference] = ["embedded", *(("mosquitto",) if find_mosquitto() else ())]
    settings = {"messages": given.messages, "requests": given.requests, "seed": given.seed}
    found: dict[str, Any] = {
        "benchmark": "security",
        "settings": settings,
        "topics": {kind: timed(partial(topics, kind), f"topics, {kind}") for kind in brokers},
    }
    if given.messages:
        found["messages"] = {
            kind: timed(partial(messages, kind, given.messages, given.seed), f"messages, {kind}")
            for kind in brokers
        }
    if given.requests:
        found["requests"] = timed(partial(requests, given.requests, given.seed), "requests")
    if given.out is not None:
        (given.out / FILE).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
