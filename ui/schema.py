"""Apply a site's script of CREATE statements to the catalog, once and again after changes."""

import logging

from federated_optimizer.coordinator.contract.coordinator_api import CoordinatorApi
from streamsql.errors import FederationError
from streamsql.syntax import parse_script
from streamsql.syntax.statements import CreateSource, CreateView

log = logging.getLogger(__name__)


async def apply_schema(coordinator: CoordinatorApi, script: str) -> int:
    """Define what is unknown and replace what has changed; return how many were.

    A definition that cannot be replaced, because a running query uses it, is kept with a warning.

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
        kind = "VIEW" if isinstance(statement, CreateView) else "SOURCE"
        kind = "TABLE" if getattr(statement, "kind", "") == "table" else kind
        try:
            if known is not None:
                await coordinator.execute(f'DROP {kind} "{known.name}"')
            await coordinator.execute(statement.text)
        except FederationError as error:
            log.warning("%s keeps its old definition: %s", name, error.message)
        else:
            changed += 1
    return changed
