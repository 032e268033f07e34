"""Is every answer right, whatever queries come and go over one network of shared computations?

    python -m benchmarks.network_sequences [--sequences 10000 | --quick] [--actions 30] [--seed 0]
        [--json]

Each sequence is random: queries of some sixty templates that vary each other begin and end, rows
come, are withdrawn and expire at two gateways, and gateways and the base site die and come back,
while messages are lost and come twice. The queries share by one of the strategies, and nodes are
made eagerly or when they are wanted twice. Whenever the sites are at rest the rows of each query
are compared with

    from scratch    the reference evaluator's over the events of the gateways that are there
    alone           those of the same query in a run of its own at the same sites
    DuckDB          over the rows of a plain model, at about one rest in seven

The first difference ends the program with the whole story of its sequence, and `--seed N
--sequences 1` repeats it. At the end of each sequence all queries end, and nothing may be left.
"""

import argparse
import json
import sys

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks._sequences.network_sequence import (
    Counts,
    Sequence,
    WrongRowsError,
    bound_templates,
)
from benchmarks._sequences.rows_of_sites import PlainTables
from federated_optimizer.sharing.strategy import Materialize, Strategy

ACTIONS = 30
FEW = 20


def compared(first: int, sequences: int, actions: int, *, shown: bool = False) -> Counts:
    """Return the counts of sequences, by their seeds.

    Raises:
        WrongRowsError: A query had other rows than an oracle.
    """
    templates, tables, counts = bound_templates(), PlainTables(), Counts()
    with Progress(console=Console(stderr=True), disable=not shown) as progress:
        task = progress.add_task("sequences", total=sequences)
        for seed in range(first, first + sequences):
            strategy, materialize = ways_of(seed)
            sequence = Sequence(seed, templates, tables, strategy, materialize)
            try:
                counts.add(sequence.run(actions))
            except WrongRowsError as error:
                raise WrongRowsError(f"seed {seed}, {strategy}, {materialize}: {error}") from error
            progress.advance(task)
    return counts


def ways_of(seed: int) -> tuple[Strategy, Materialize]:
    """Return how the queries of a sequence share: two thirds of them all that they can."""
    others = list(Strategy)
    strategy = Strategy.ALL if seed % 3 else others[seed // 3 % len(others)]
    return strategy, list(Materialize)[seed % 2]


def main() -> None:
    """Compare, and print what was compared."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sequences", type=int, default=10_000)
    parser.add_argument("--quick", action="store_true", help="twenty sequences")
    parser.add_argument("--actions", type=int, default=ACTIONS)
    parser.add_argument("--seed", type=int, default=0, help="of the first sequence")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if asked.quick:
        asked.sequences = FEW
    try:
        found = compared(asked.seed, asked.sequences, asked.actions, shown=not asked.json)
    except WrongRowsError as error:
        sys.exit(str(error))
    figures = found.figures()
    if asked.json:
        print(json.dumps({"sequences": asked.sequences, "wrong": 0} | figures, indent=1))
        return
    table = Table("counted", "", title=f"{asked.sequences:,} sequences, no wrong row")
    table.columns[1].justify = "right"
    for name, value in figures.items():
        table.add_row(name, f"{value:,}")
    Console().print(table)


if __name__ == "__main__":
    main()
