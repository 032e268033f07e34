"""Sources of version 0.1 named a wrapper; connectors feed them now."""

import re
from collections.abc import Callable

import msgspec

from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.connectors import ConnectorKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.errors import FederationError
from streamsql.syntax import CreateSource, parse_script

_WRAPPER = re.compile(r"\bwrapper\s*=", re.IGNORECASE)
_TOPIC = re.compile(r",?\s*\btopic\s*=\s*'[^']*'", re.IGNORECASE)
_WITHOUT_TOPIC = (ConnectorKind.CALENDAR, ConnectorKind.REPLAY)
"""Their endpoints give rows of one kind, so their sources have nothing to choose from."""


def migrated(
    definition: SourceDefinition, next_version: Callable[[], int]
) -> SourceDefinition | None:
    """Return a stored source of a wrapper as one of the connector of that name.

    It names no endpoint, so gateways serve it by their only one of that connector. None: no wrapper
    feeds it, or its text is none that can be read any more.

    Args:
        definition: As it was stored.
        next_version: Returns a version that no source of that name had.
    """
    kind = definition.option("wrapper")
    if kind is None or definition.mapping is not None:
        return None
    text = _WRAPPER.sub("connector =", definition.text, count=1)
    if kind in _WITHOUT_TOPIC:
        text = _TOPIC.sub("", text)
    try:
        (statement,) = parse_script(text)
        assert isinstance(statement, CreateSource)  # noqa: S101  (a source's text is one)
        found = define(statement, Catalog())
    except (FederationError, ValueError, AssertionError):
        return None
    if not isinstance(found, SourceDefinition) or found.mapping is None:
        return None
    return msgspec.structs.replace(found, version=next_version())
