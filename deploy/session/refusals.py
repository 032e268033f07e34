"""What a local session cannot answer."""

from streamsql.algebra.operators import Plan, Scan, walk_plan
from streamsql.catalog.system import system_source
from streamsql.errors import UnsupportedError


def refuse_system_sources(plan: Plan) -> None:
    """Refuse a query over what only a running federation can tell.

    Raises:
        UnsupportedError: It reads a system source.
    """
    for node in walk_plan(plan):
        if isinstance(node, Scan) and system_source(node.source) is not None:
            raise UnsupportedError(
                f"{node.source} describes running queries and their sites; a local session "
                "runs one query after another and keeps none running",
                hint="run it in a federation: pando shell, or pando query run",
                code="needs_federation",
            )
