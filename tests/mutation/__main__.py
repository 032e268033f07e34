"""Change key modules a little, one place at a time, and show the changes that no test notices.

make mutants ARGS="--module watermark --number 40 --seed 7"
"""

import argparse
import sys
import time
from collections.abc import Sequence

from tests.mutation.modules import KEY_MODULES
from tests.mutation.sample import ROOT, MutationError, Sample, Survivor, sampled


def chosen_modules(wanted: Sequence[str]) -> list[str]:
    """Return the key modules of some names; without names all.

    Raises:
        SystemExit: There is none of a name.
    """
    for name in wanted:
        if name not in KEY_MODULES:
            raise SystemExit(f"{name!r} is no key module; there are {', '.join(KEY_MODULES)}")
    return list(wanted or KEY_MODULES)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run samples, print a line a module and then the survivors; return 1 if a run failed."""
    parser = argparse.ArgumentParser(
        prog="make mutants", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--module", action="append", default=[], help="name (default: all)")
    parser.add_argument("--number", type=int, default=10, help="mutants a module (default 10)")
    parser.add_argument("--seed", type=int, default=0, help="chooses them (default 0)")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time (default 2)")
    options = parser.parse_args(arguments)
    sample = Sample(options.number, options.seed, options.jobs)
    survivors: list[Survivor] = []
    failed = 0
    for module in chosen_modules(options.module):
        began = time.monotonic()
        try:
            found, left = sampled(module, KEY_MODULES[module], sample, ROOT)
        except MutationError as error:
            print(error, file=sys.stderr)
            failed = 1
            continue
        survivors += left
        told = ", ".join(f"{count} {status}" for status, count in sorted(found.items()))
        print(f"{module:<28} {told}  ({time.monotonic() - began:.0f} s)", flush=True)
    print(f"\n{len(survivors)} changes that no test noticed, seed {options.seed}:")
    for survivor in survivors:
        print(f"\n{survivor.place}  {survivor.status}  {survivor.mutant.rpartition('.')[2]}")
        print("\n".join(f"  {line}" for line in survivor.diff))
    return failed


if __name__ == "__main__":
    sys.exit(main())
