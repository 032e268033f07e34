"""LATE(s) in FROM: the events of a stream that came after its watermark had passed them."""

import msgspec
from sqlglot import exp

from streamsql.algebra.operators import Plan, ScanPart
from streamsql.binder.names.environment import Environment, identifier_text
from streamsql.catalog.definitions import SourceDefinition


def is_late(node: exp.Expr) -> bool:
    """Whether a relation in FROM is written LATE(…)."""
    return isinstance(node, exp.Anonymous) and node.name.upper() == "LATE"


def bind_late(node: exp.Expr, environment: Environment) -> tuple[str, Plan]:
    """Return the name of the stream and the scan of its late events.

    Raises:
        BindingError: It names no stream, or one without a watermark.
        UnsupportedError: It names a stream whose rows are replaced by key.
    """
    (argument, *more) = node.expressions or (None,)
    if more or not isinstance(argument, exp.Column) or argument.table:
        raise environment.error(
            node, "LATE takes the name of a stream", hint="FROM LATE(seat)", code="wrong_arguments"
        )
    name = identifier_text(argument.this)
    definition = environment.binding.catalog.find(name)
    if not isinstance(definition, SourceDefinition):
        raise environment.error(
            argument,
            f"there is no stream {name!r}",
            hint="LATE takes the name of a stream",
            code="unknown_relation",
        )
    scan = definition.scan()
    if scan.lateness is None and definition.lateness is not None:
        raise environment.unsupported(
            argument,
            f"rows of {name!r} are never late: the newest row of each key counts, whenever "
            "it arrives",
            hint=f"read {name} itself",
            code="never_late",
        )
    if scan.lateness is None:
        raise environment.error(
            argument,
            f"rows of {name!r} are never late: it has no watermark",
            hint=f"CREATE SOURCE {name} (…, WATERMARK FOR ts AS ts - INTERVAL '5 s')",
            code="no_watermark",
        )
    return name, msgspec.structs.replace(scan, part=ScanPart.LATE)
