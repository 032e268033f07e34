"""Sources of version 0.1 named a wrapper; connectors feed them now."""

import re
from dataclasses import dataclass

from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.connectors import ConnectorKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.errors import FederationError
from streamsql.syntax import CreateSource, parse_script

_WRAPPER = re.compile(r"\bwrapper\s*=", re.IGNORECASE)
_TOPIC = re.compile(r",?\s*\btopic\s*=\s*'[^']*'", re.IGNORECASE)
MAX_WHY = 300
_WITHOUT_TOPIC = (ConnectorKind.CALENDAR, ConnectorKind.REPLAY)
"""Their endpoints give rows of one kind, so their sources have nothing to choose from."""


@dataclass(frozen=True, slots=True)
class Unmigrated:
    """A source of a wrapper that no connector can feed as it is stored.

    Attributes:
        reason: In words, with what to do.
    """

    reason: str


def migrated(definition: SourceDefinition) -> SourceDefinition | Unmigrated | None:
    """Return a stored source of a wrapper as one of the connector of that name, without a version.

    It names no endpoint, so gateways serve it by their only one of that connector. None: it is of
    no wrapper.
    """
    kind = definition.option("wrapper")
    if kind is None or definition.mapping is not None:
        return None
    text = _WRAPPER.sub("connector =", definition.text, count=1)
    if kind in _WITHOUT_TOPIC:
        text = _TOPIC.sub("", text)
    try:
        statements = parse_script(text)
        if len(statements) != 1 or not isinstance(statements[0], CreateSource):
            return _unmigrated(definition, kind, "its statement is no CREATE SOURCE")
        found = define(statements[0], Catalog())
    except FederationError as error:
        return _unmigrated(definition, kind, error.message)
    except ValueError as error:
        return _unmigrated(definition, kind, str(error))
    if not isinstance(found, SourceDefinition) or found.mapping is None:
        return _unmigrated(definition, kind, "its statement names no connector")
    return found


def _unmigrated(definition: SourceDefinition, kind: str, why: str) -> Unmigrated:
    return Unmigrated(
        f"no connector feeds it: version 0.1 stored it with wrapper {kind!r:.60}, and its "
        f"statement cannot be used any more ({why[:MAX_WHY]}); write CREATE OR REPLACE SOURCE "
        f"{definition.name} (…) WITH (connector = …)"
    )
