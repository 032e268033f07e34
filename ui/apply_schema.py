"""Apply a site's script of CREATE statements to the catalog, once and again after changes."""

import logging

from federated_optimizer.coordinator.contract.coordinator_api import CoordinatorApi
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.catalog import kind_of
from streamsql.catalog.connectors import LOCAL_CONNECTORS, ConnectorKind
from streamsql.catalog.definitions import Definition, SourceDefinition
from streamsql.errors import FederationError
from streamsql.syntax import parse_script
from streamsql.syntax.statements import CreateSource, CreateView

log = logging.getLogger(__name__)


async def apply_schema(coordinator: CoordinatorApi, script: str) -> int:
    """Define what is unknown and replace what has changed; return how many were.

    A definition that cannot be replaced, because a running query uses it, is kept with a warning. A
    source that a connector feeds is kept as it is: people alter it, and gateways follow. It is
    replaced only if it reads what another site's script has called by its name, or a recording,
    whose columns are those of the file.

    Raises:
        QueryError: The script is wrong.
    """
    changed = 0
    for statement in parse_script(script):
        if not isinstance(statement, CreateSource | CreateView):
            continue
        name = statement.name.text
        known = {d.name.lower(): d for d in coordinator.definitions()}.get(name.lower())
        if known is not None and known.text.strip() == statement.text.strip():
            continue
        if _is_altered(statement, known):
            log.info("%s stays as it is in the catalog: the script has another text", name)
            continue
        try:
            await coordinator.execute(_replacement(statement, known))
        except FederationError as error:
            log.warning("%s keeps its old definition: %s", name, error.message)
        else:
            changed += 1
    return changed


def _is_altered(statement: CreateSource | CreateView, known: Definition | None) -> bool:
    """Whether a known source is this statement's own, changed by somebody."""
    if not isinstance(known, SourceDefinition) or known.mapping is None:
        return False
    given = {option.name: option.value for option in getattr(statement, "options", ())}
    if given.get("connector") == ConnectorKind.REPLAY:
        return False
    mapping = known.mapping
    same = (given.get("connector"), given.get("endpoint", "")) == (
        mapping.connector,
        mapping.endpoint,
    )
    return same or mapping.connector not in LOCAL_CONNECTORS


def _replacement(statement: CreateSource | CreateView, known: Definition | None) -> str:
    """Return the script that puts a definition in place of the known one."""
    if known is None:
        return statement.text
    is_source = isinstance(statement, CreateSource) and statement.kind != SourceKind.TABLE
    if is_source and kind_of(known) == "source":
        create = len("CREATE")
        return f"{statement.text[:create]} OR REPLACE{statement.text[create:]}"
    return f'DROP {kind_of(known).upper()} "{known.name}"; {statement.text}'
