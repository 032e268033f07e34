"""The rows of `sys_nodes`: nodes of the network and what rests on them, kept change by change."""

from federated_optimizer.coordinator.computations.network_index import NetworkIndex
from federated_optimizer.coordinator.system.changing_tables import ChangedRows, ChangingTable
from streamsql.data.delta import Delta
from streamsql.data.types import Row


class NodeTable(ChangingTable):
    """`sys_nodes`. What changes all the time is not in it: a table that is read has to rest."""

    def __init__(self, index: NetworkIndex) -> None:
        self._index = index
        self._rows = ChangedRows()

    def __call__(self) -> tuple[Row, ...]:
        """Return its rows."""
        self.look()
        return self._rows.all()

    def look(self) -> int:
        """Take up what has happened."""
        changed = self._index.take_changed()
        if changed is None:
            changed = tuple(dict.fromkeys((*self._rows.keys(), *self._index.names())))
        for name in changed:
            self._rows.put(name, self._row(name))
        return self._rows.version

    def since(self, version: int) -> Delta | None:
        """Return what has changed since a version."""
        return self._rows.since(version)

    def _row(self, name: str) -> Row | None:
        index = self._index
        shape = index.shape(name)
        entry = None if shape is None else index.entry(shape.run)
        if shape is None or entry is None:
            return None
        kind, computes = index.words(name)
        owner = index.owner(shape.run)
        return (
            name,
            shape.run,
            shape.fragment,
            str(kind),
            computes,
            ", ".join(shape.sites),
            ", ".join(shape.sources),
            ", ".join(shape.reads),
            len(index.readers(name)),
            0 if "/" in name else entry.count,
            index.resting(name),
            "" if owner is None else owner.name,
            not entry.count,
            index.since(shape.run),
        )
