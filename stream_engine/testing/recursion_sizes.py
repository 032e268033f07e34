"""How much a recursion with provenance keeps: for soak tests, which watch that it stays bounded."""

from stream_engine.recursion.absorption.fixpoint_operator import FixpointOperator
from stream_engine.recursion.program.item_tables import ItemTable


def sizes_of(operator: FixpointOperator) -> dict[str, int]:
    """Return the sizes of everything that may grow, by what it is."""
    partition, leaves = operator._partition, operator._leaf_rows
    entries = [entry for table in partition.tables for entry in table.entries.values()]
    tables = leaves.arrived if leaves.arrived is leaves.joined else leaves.arrived + leaves.joined
    joined = [partition.view.joined, *(copy.joined for copy in partition.copies)]
    indexed = sum(map(_index_size, [*joined, *tables])) + sum(len(t.by_token) for t in tables)
    weighed = sum(map(len, leaves._token_of)) + sum(len(i._weights) for i in leaves._inputs)
    return {
        "leaf rows": sum(map(len, tables)),
        "entries": len(entries),
        "alternatives": sum(len(e.received) + (e.buffered is not None) for e in entries),
        "mentions": sum(table.mentions for table in partition.tables),
        "index entries": indexed + weighed,
        "groups": partition.view.group_count or 0,
        "unswept tokens": len(partition._unswept),
        "tombstone intervals": operator._deaths.tombstones.interval_count,
        "inbox": len(operator._inbox),
    }


def _index_size(table: ItemTable) -> int:
    """Return how many items all indexes and remembered answers of a table hold."""
    buckets = [bucket for _, index in table._indexes.values() for bucket in index.values()]
    return sum(map(len, buckets)) + sum(matching.size for matching in table._matchings.values())
