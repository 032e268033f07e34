"""Map hostile payloads of every format and say what became of them.

python -m tests.streamsql.mapping.hostile [--count N] [--format json] [--seed 7] [--out FOLDER]

For each format a million random and mutated payloads, the worst of a megabyte, and larger ones; for
`fields` hostile values by their addresses. It ends with an error at the first payload that raises,
or becomes a row that is not of the source's types.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from streamsql.mapping.source_mapping import PayloadFormat
from tests.streamsql.mapping.hostile.checked_mapping import Counts, check_payloads, check_records
from tests.streamsql.mapping.hostile.large import LARGE, oversized
from tests.streamsql.mapping.hostile.payloads import FORMATS, hostile_payloads
from tests.streamsql.mapping.hostile.records import hostile_records, large_records

FILE = "hostile-devices.json"
ALL = (*FORMATS, PayloadFormat.FIELDS)


def parts(form: PayloadFormat, seed: int, count: int) -> Iterator[Counts]:
    """Yield what became of the parts of the payloads of a format."""
    if form == PayloadFormat.FIELDS:
        yield check_records(large_records())
        yield check_records(hostile_records(seed, count))
        return
    for with_rows in (False, True):
        yield check_payloads(form, LARGE[form], with_rows=with_rows)
        yield check_payloads(form, oversized(form), with_rows=with_rows)
        payloads = hostile_payloads(form, seed + with_rows, count // 2)
        yield check_payloads(form, payloads, with_rows=with_rows)


def main() -> None:
    """Map them, and print a line for each format."""
    parser = argparse.ArgumentParser(description="Map hostile payloads of every format")
    parser.add_argument("--count", type=int, default=1_000_000, help="payloads of each format")
    parser.add_argument("--format", choices=[form.value for form in ALL], default=None)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--out", type=Path, help=f"folder for {FILE}")
    given = parser.parse_args()
    formats: dict[str, dict[str, float]] = {}
    for form in ALL if given.format is None else (PayloadFormat(given.format),):
        began = time.perf_counter()
        counts = sum(parts(form, given.seed, given.count), Counts())
        seconds = round(time.perf_counter() - began, 1)
        formats[form.value] = {**msgspec.structs.asdict(counts), "seconds": seconds}
        if not given.json:
            print(f"{form.value:<11} {seconds:6.0f} s  {counts}", flush=True)
    settings = {"count": given.count, "seed": given.seed}
    found = {"benchmark": "hostile_devices", "settings": settings, "formats": formats}
    if given.json:
        print(json.dumps(found))
    if given.out is not None:
        (given.out / FILE).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
