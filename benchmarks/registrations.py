"""Registrations of queries a second while many run, and the time that one takes.

    python -m benchmarks.registrations [--quick] [--json] [--counts 1 100 1000] [--broker KIND]

Starts a broker, a base site, a gateway and a console as processes of their own, and registers
queries over REST as any client does: by four clients at once, and one at a time.

    equal        all have one text: they are one run
    in words     all mean the same and are written differently
    variations   each has a condition of its own
    joins        each joins readings of a device with those of another and has a bound of its own
    alone        each has one and refuses to be shared: `WITH (shared = 'no')`

    CPU ms each       CPU time of the console for one of those, with all else that it does meanwhile
    registrations/s   by four clients, from the first request to the last answer
    p50 ms, p99 ms    of one registration when nobody else registers, with so many running

How to read it: only ratios within one run mean anything. `to one` compares with the first queries
that were registered in the same run, when hardly any ran.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from benchmarks._figures import print_tables
from benchmarks._fleet_cost.federation import ROOT, SOURCE, Base, Console, start_gateways, until
from broker.broker_launch import Preference, find_mosquitto
from broker.broker_testing import BrokerProcess

CLIENTS = 4
COUNTS = (100, 1000)
SINGLE = 40
"""Queries that are registered one at a time, before and after the others."""

Figures = dict[str, float | None]

PREDICATES = (
    "celsius > {n} AND device <> 'x'",
    "device <> 'x' AND celsius > {n}",
    "NOT (celsius <= {n}) AND device <> 'x'",
    "{n} < celsius AND 'x' <> device",
    "celsius > {n} AND NOT device = 'x'",
)


def equal(_number: int) -> str:
    """Return the text that all have."""
    return "SELECT device, celsius FROM climate WHERE celsius > 20"


def in_words(number: int) -> str:
    """Return one of five texts of one meaning, with an alias of its own."""
    words = PREDICATES[number % len(PREDICATES)].format(n=20)
    return f"SELECT device, celsius FROM climate AS c{number} WHERE {words}"


def variation(number: int) -> str:
    """Return a text whose condition nobody else has."""
    return f"SELECT device, celsius FROM climate WHERE celsius > 20.{number:05}"


def joined(number: int) -> str:
    """Return a join of three inputs whose bound nobody else has."""
    return (
        "SELECT a.device AS one, b.device AS two, c.celsius AS third FROM climate a, climate b, "
        "climate c WHERE a.celsius = b.celsius AND b.device = c.device AND a.celsius > 20 "
        f"AND b.celsius <= c.celsius AND c.celsius > 20.{number:05}"
    )


def alone(number: int) -> str:
    """Return a variation that is not shared."""
    return f"{variation(number)} WITH (shared = 'no')"


KINDS: dict[str, Callable[[int], str]] = {
    "equal": equal,
    "in words": in_words,
    "variations": variation,
    "joins": joined,
    "alone": alone,
}


class Client:
    """Registers queries over one connection."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def register(self, text: str) -> float:
        """Register a query; return the milliseconds until the answer."""
        began = time.perf_counter()
        self._connection.request(
            *("POST", "/api/statements", json.dumps({"text": text})),
            {"Content-Type": "application/json"},
        )
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise RuntimeError(content.decode())
        return (time.perf_counter() - began) * 1e3

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def together(port: int, texts: Sequence[str], clients: int = CLIENTS) -> float:
    """Register texts by some clients at once; return how many a second."""
    failed: list[Exception] = []

    def work(mine: Sequence[str]) -> None:
        with contextlib.closing(Client(port)) as client:
            try:
                for text in mine:
                    client.register(text)
            except (OSError, RuntimeError) as error:
                failed.append(error)

    threads = [threading.Thread(target=work, args=(texts[i::clients],)) for i in range(clients)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return len(texts) / (time.perf_counter() - began)


def one_at_a_time(port: int, texts: Sequence[str]) -> list[float]:
    """Register texts one after another; return the milliseconds of each."""
    with contextlib.closing(Client(port)) as client:
        return [client.register(text) for text in texts]


def _latencies(took: Sequence[float]) -> Figures:
    ordered = sorted(took)
    return {"p50 ms": median(ordered), "p99 ms": ordered[int(0.99 * (len(ordered) - 1))]}


def measure(
    kind: Preference, make: Callable[[int], str], counts: Sequence[int]
) -> dict[str, Figures]:
    """Return figures by the number of queries that run, in a federation of its own."""
    with contextlib.ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory()))
        broker = running.enter_context(BrokerProcess(kind, folder))
        running.enter_context(Base(folder, broker.url))
        for process in start_gateways(folder, broker.url, 1):
            running.enter_context(process)
        console = running.enter_context(Console(ROOT, folder, broker.url))
        console.run(SOURCE)
        until(lambda: console.live_gateways() == 1, "the gateway is not there")
        registered = 0

        def texts(count: int) -> list[str]:
            nonlocal registered
            registered += count
            return [make(number) for number in range(registered - count, registered)]

        one_at_a_time(console.port, texts(3))  # imports and caches
        first = _latencies(one_at_a_time(console.port, texts(SINGLE)))
        table: dict[str, Figures] = {f"{registered} run": {"registrations/s": None, **first}}
        for count in counts:
            cpu, running_before = console.process.cpu(), registered
            rate = together(console.port, texts(count - registered))
            cpu = (console.process.cpu() - cpu) / max(count - running_before, 1) * 1e3
            figures = _latencies(one_at_a_time(console.port, texts(SINGLE)))
            before = first["p50 ms"] or 1.0
            figures |= {"to one": (figures["p50 ms"] or 0.0) / before, "console, CPU ms each": cpu}
            table[f"{count} run"] = {"registrations/s": rate, **figures}
        return table


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="forty queries, equal and varied")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--counts", type=int, nargs="+", help="numbers of queries that run")
    parser.add_argument("--kinds", nargs="+", choices=tuple(KINDS), help="kinds of queries")
    parser.add_argument("--broker", choices=("mosquitto", "embedded"), help="Mosquitto, if it is")
    options = parser.parse_args()
    broker: Preference = options.broker or ("mosquitto" if find_mosquitto() else "embedded")
    counts = options.counts or ((40,) if options.quick else COUNTS)
    kinds = options.kinds or (("equal", "variations") if options.quick else tuple(KINDS))
    found = {name: measure(broker, KINDS[name], counts) for name in kinds}
    if options.json:
        print(json.dumps({"broker": broker, "queries": found}))
        return
    print_tables({f"queries: {name}": table for name, table in found.items()}, digits=1)


if __name__ == "__main__":
    main()
