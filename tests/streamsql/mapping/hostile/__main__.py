"""Map hostile payloads of every format and say what became of them.

python -m tests.streamsql.mapping.hostile [--count 1000000] [--format json] [--seed 7]
"""

import argparse
import time

from streamsql.mapping.source_mapping import PayloadFormat
from tests.streamsql.mapping.hostile.checked_mapping import check_payloads
from tests.streamsql.mapping.hostile.payloads import FORMATS, hostile_payloads


def main() -> None:
    """Map them, and print a line for each format."""
    parser = argparse.ArgumentParser(description="Map hostile payloads of every format")
    parser.add_argument("--count", type=int, default=1_000_000, help="payloads of each format")
    parser.add_argument("--format", choices=[form.value for form in FORMATS], default=None)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    for form in FORMATS if given.format is None else (PayloadFormat(given.format),):
        began = time.perf_counter()
        for with_rows in (False, True):
            payloads = hostile_payloads(form, given.seed + with_rows, given.count // 2)
            counts = check_payloads(form, payloads, with_rows=with_rows)
            print(f"{form.value:<11} {'rows' if with_rows else 'one row':<8} {counts}", flush=True)
        print(f"{form.value:<11} {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
