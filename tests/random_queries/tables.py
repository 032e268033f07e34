"""Cases for PostgreSQL: many queries over the same tables, named by a seed."""

from random import Random

from tests.random_queries.queries import Case, case_for_postgres
from tests.random_queries.schemas import DOMAINS, NAMES, START, Batch, Relation, batches

QUERIES_PER_SCHEMA = 100


def case_of(seed: int) -> Case:
    """Return the case of a seed; a hundred seeds in a row share tables and rows."""
    found, happening = _tables(seed // QUERIES_PER_SCHEMA)
    return case_for_postgres(Random(seed), found, happening)


def _tables(number: int) -> tuple[list[Relation], list[Batch]]:
    random = Random(f"tables {number}")
    found = [_table(random, n) for n in range(3)]
    happening = batches(random, found, frozenset())
    joined = [change for batch in happening[:-1] for change in batch.changes]
    return found, [Batch(START, tuple(joined)), happening[-1]]


def _table(random: Random, number: int) -> Relation:
    counts: dict[str, int] = {}
    columns = []
    for kind in random.sample([*DOMAINS, "INTEGER", "TEXT"], random.randint(3, 5)):
        counts[kind] = counts.get(kind, 0) + 1
        columns.append((f"{NAMES[kind]}{counts[kind]}", kind))
    return Relation(f"r{number}", tuple(columns), table=True)
