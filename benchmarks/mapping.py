"""Cost of a payload on its way to typed rows, beside the bare library's decoding, in turns.

    python -m benchmarks.mapping [--quick] [--json] [--out FOLDER]

Per format: microseconds of CPU a payload of the mapper (bytes to rows with facts, units, times and
bounds), and of the library that decodes the same bytes to Python values and nothing else.

How to read it: the ratio within one run counts. The payload of `json` is Tasmota's with three
columns and the device's name from the topic; the goal is 15 µs. What eKuiper and Telegraf publish
is printed below; these are their figures, of other steps on other machines.
"""

import argparse
import gc
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks._figures import print_tables, write_results
from benchmarks._mapping.cases import CASES, Case
from benchmarks._mapping.others import THEIRS
from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import Value
from streamsql.mapping.mapper import Mapper
from streamsql.syntax import CreateSource, parse_script

ARRIVAL = 1_780_000_000_000_000
FACTS: dict[str, Value] = {"device": "th16", "topic": "tele/th16/SENSOR", "retained": False}


def compiled(case: Case) -> Mapper:
    """Return the mapper of a case's statement.

    Raises:
        RuntimeError: It does not make the rows that it should.
    """
    text = (
        f"CREATE SOURCE s (device TEXT, {case.columns}) "
        f"WITH (connector = 'mqtt', endpoint = 'home', topic = '{case.topic}'{case.options})"
    )
    (statement,) = parse_script(text)
    if not isinstance(statement, CreateSource):
        raise TypeError(text)
    definition = define(statement, Catalog())
    if not isinstance(definition, SourceDefinition):
        raise TypeError(text)
    mapper = Mapper(definition)
    mapped = mapper.map(case.payload, FACTS, ARRIVAL)
    if len(mapped.rows) != case.rows or mapped.problems:
        raise RuntimeError(f"{text}: {len(mapped.rows)} rows, problems: {mapped.problems}")
    return mapper


def microseconds(work: Callable[[], object], seconds: float) -> float:
    """Return the CPU time of a call; its least over ten parts of the time."""
    gc.collect()
    count = 1
    while True:
        began = time.process_time()
        for _ in range(count):
            work()
        took = time.process_time() - began
        if took > seconds / 10:
            break
        count *= 2
    parts = [took / count]
    for _ in range(9):
        began = time.process_time()
        for _ in range(count):
            work()
        parts.append((time.process_time() - began) / count)
    return min(parts) * 1e6


def measured(turns: int, seconds: float) -> dict[str, dict[str, float]]:
    """Return the figures of each format: medians over turns of mapper and library."""
    found: dict[str, dict[str, float]] = {}
    for name, case in CASES.items():
        mapper, payload = compiled(case), case.payload
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(turns):
            ours.append(microseconds(lambda m=mapper, p=payload: m.map(p, FACTS, ARRIVAL), seconds))
            theirs.append(microseconds(lambda c=case: c.library(c.payload), seconds))
        found[f"{name} ({case.name})"] = {
            "bytes": len(payload),
            "rows": case.rows,
            "mapper, µs a payload": median(ours),
            "library, µs a payload": median(theirs),
            "mapper, µs a row": median(ours) / case.rows,
        }
    return found


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="What a payload costs on its way to rows")
    parser.add_argument("--quick", action="store_true", help="a few seconds")
    parser.add_argument("--json", action="store_true", help="one object instead of tables")
    parser.add_argument("--out", type=Path, help="folder for mapping.json")
    given = parser.parse_args()
    turns, seconds = (1, 0.1) if given.quick else (5, 1.0)
    formats = measured(turns, seconds)
    found = {
        "benchmark": "mapping",
        "settings": {"turns": turns, "seconds": seconds},
        "formats": formats,
        "published by others": [each._asdict() for each in THEIRS],
    }
    write_results(given.out, "mapping.json", found)
    if given.json:
        print(json.dumps(found, indent=2))
        return
    print_tables({"microseconds of CPU": formats}, digits=2)
    print("\npublished by others of their own programs, not measured here")
    for each in THEIRS:
        print(f"  {each.who}: {each.what}\n    {each.where}, seen {each.seen}")


if __name__ == "__main__":
    main()
