"""Names in FROM that mean a source, table or view: found in the catalog, if they may be read."""

from sqlglot import exp

from streamsql.binder.names.environment import Environment
from streamsql.catalog.catalog import is_relation
from streamsql.catalog.definitions import Definition


def relation_named(name: str, node: exp.Expr, environment: Environment) -> Definition | None:
    """Return the definition that a name means, and note that it is read; None: there is none.

    Raises:
        BindingError: Whoever asks may not read it.
    """
    catalog = environment.binding.catalog
    definition = catalog.find(name)
    if definition is None or not is_relation(definition):
        return definition
    read = catalog.read_of(definition.name, environment.expanding)
    refused = catalog.refusal(read)
    if refused is not None:
        raise environment.error(node, refused.reason, hint=refused.hint, code="not_allowed")
    environment.binding.reads.add(read)
    return definition
