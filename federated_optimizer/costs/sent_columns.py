"""Bytes of the rows that a plan sends: as they were counted, else by the types of its columns."""

from federated_optimizer.costs.estimates import row_bytes
from federated_optimizer.statistics.planning_statistics import Statistics
from streamsql.algebra.column_origins import column_origins
from streamsql.algebra.operators import Distinct, Filter, Plan, Project, Scan, Window, walk_plan


def sent_columns(plan: Plan) -> tuple[str, str] | None:
    """Return the source, in lower case, and the columns of it that a plan sends, sorted.

    None: it computes columns, or reads more than one source.
    """
    nodes = tuple(walk_plan(plan))
    if not all(isinstance(node, Scan | Window | Filter | Project | Distinct) for node in nodes):
        return None
    schemas = {node.source: node.schema.names for node in nodes if isinstance(node, Scan)}
    origins = column_origins(plan)
    names = [schemas[origin[0]][origin[1]] for origin in origins if origin is not None]
    if len(schemas) != 1 or len(names) != len(origins):
        return None
    (source,) = schemas
    return source.lower(), ", ".join(sorted(names))


def sent_bytes(plan: Plan, statistics: Statistics) -> float:
    """Return the bytes of a row that a plan sends, without its share of the message."""
    columns = sent_columns(plan)
    counted = None if columns is None else statistics.row_bytes.get(columns)
    return row_bytes(plan.schema) if counted is None else counted
