"""Look for cases on which engines disagree: `python -m tests.random_queries.search FIRST END`.

Disagreements are cut down (batches, changes and relations that are not needed are left out) and
printed as `kept.txt` has them.
"""

import dataclasses
import sys
import time
import traceback
from collections.abc import Iterator
from random import Random

from tests.random_queries.kept import written
from tests.random_queries.queries import Case, case
from tests.random_queries.runner import Tally, check
from tests.random_queries.schemas import Batch

SECONDS = 240


def main(first: int, end: int) -> None:
    """Run the cases of these seeds, for four minutes at most."""
    tally = Tally()
    started = time.monotonic()
    for seed in range(first, end):
        if time.monotonic() - started > SECONDS:
            _say(f"stopped before {seed}")
            break
        sites = (1, 3) if seed % 3 == 0 else (1,)
        try:
            check(case(Random(seed)), tally, sites)
        except Exception:  # noqa: BLE001 - whatever it is, it is what is looked for
            told = traceback.format_exc(limit=-4).splitlines()
            _say("\n".join([f"SEED {seed}", *(line[:300] for line in told[:14])]))
            _say(written(_smaller(case(Random(seed)), sites), f"seed {seed}"))
    _say(str(tally))


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _smaller(found: Case, sites: tuple[int, ...]) -> Case:
    """Return a case that still fails, with as few changes as are needed."""
    while True:
        for candidate in _cuts(found):
            if _fails(candidate, sites):
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


def _fails(found: Case, sites: tuple[int, ...]) -> bool:
    try:
        check(found, Tally(), sites)
    except Exception:  # noqa: BLE001 - whatever it is, it is what is looked for
        return True
    return False


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
