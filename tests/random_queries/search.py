"""Look for cases on which engines disagree: `python -m tests.random_queries.search FIRST END`.

With `--postgres` the cases are those for PostgreSQL, which is asked in place of DuckDB; `--seconds`
ends the search earlier or later than after four minutes.

Disagreements are cut down (batches, changes and relations that are not needed are left out) and
printed as `kept.txt` has them.
"""

import argparse
import contextlib
import dataclasses
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from random import Random

from tests.random_queries.kept import written
from tests.random_queries.oracles import Oracle, Tally
from tests.random_queries.postgres_oracle import postgres_oracle
from tests.random_queries.queries import Case, case
from tests.random_queries.runner import check
from tests.random_queries.schemas import Batch
from tests.random_queries.tables import case_of

SECONDS = 240


def main(arguments: list[str]) -> None:
    """Run the cases of the seeds that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.random_queries.search")
    parser.add_argument("first", type=int, help="first seed")
    parser.add_argument("end", type=int, help="the seed behind the last one")
    parser.add_argument("--postgres", action="store_true", help="ask PostgreSQL, not DuckDB")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="when to end")
    asked = parser.parse_args(arguments)
    seeds = _until(range(asked.first, asked.end), asked.seconds)
    with contextlib.ExitStack() as stack:
        if asked.postgres:
            _search(seeds, case_of, stack.enter_context(postgres_oracle("search")))
        else:
            _search(seeds, lambda seed: case(Random(seed)), None)


def sites_of(seed: int) -> tuple[int, ...]:
    """Return the numbers of sites to run a case on."""
    return (1, 3) if seed % 3 == 0 else (1,)


def _until(seeds: range, seconds: float) -> Iterator[int]:
    started = time.monotonic()
    for seed in seeds:
        if time.monotonic() - started > seconds:
            _say(f"stopped before {seed}")
            return
        yield seed


def _search(seeds: Iterator[int], made: Callable[[int], Case], oracle: Oracle | None) -> None:
    tally = Tally()
    for seed in seeds:
        sites = sites_of(seed)
        try:
            check(made(seed), tally, sites, oracle)
        except Exception:  # noqa: BLE001 - whatever it is, it is what is looked for
            told = traceback.format_exc(limit=-4).splitlines()
            _say("\n".join([f"SEED {seed}", *(line[:300] for line in told[:14])]))
            _say(written(_smaller(made(seed), sites, oracle), f"seed {seed}"))
    _say(str(tally))


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _smaller(found: Case, sites: tuple[int, ...], oracle: Oracle | None) -> Case:
    """Return a case that still fails, with as few changes as are needed."""
    while True:
        for candidate in _cuts(found):
            if _fails(candidate, sites, oracle):
                found = candidate
                break
        else:
            return found


def _cuts(found: Case) -> Iterator[Case]:
    for position, batch in enumerate(found.batches):
        before, after = found.batches[:position], found.batches[position + 1 :]
        if len(found.batches) > 1:
            yield dataclasses.replace(found, batches=before + after)
        for number in range(len(batch.changes)):
            changes = batch.changes[:number] + batch.changes[number + 1 :]
            fewer = Batch(batch.now, changes)
            yield dataclasses.replace(found, batches=(*before, fewer, *after))


def _fails(found: Case, sites: tuple[int, ...], oracle: Oracle | None) -> bool:
    try:
        check(found, Tally(), sites, oracle)
    except Exception:  # noqa: BLE001 - whatever it is, it is what is looked for
        return True
    return False


if __name__ == "__main__":
    main(sys.argv[1:])
