"""Options of a declared source, each checked and in the form that its mapping holds."""

import re

from streamsql.binder.statements.options.source_options import (
    check_value,
    listed_or_close,
    refuse_option,
)
from streamsql.catalog.connectors import (
    ConnectorKind,
    hands_over_records,
    is_connector_name,
    is_endpoint_name,
    is_site_name,
    misspelled,
)
from streamsql.catalog.table_options import delimiter_of, truth_of
from streamsql.mapping.source_mapping import PayloadFormat
from streamsql.syntax.statements import Option

MAX_GATEWAYS = 256
MAX_ONLY = 32
"""Conditions of the option only."""
ONLY_EXAMPLE = "only = 'type=sensor, ENERGY'"
ONLY_ROWS_EXAMPLE = "only_rows = 'pdr>0, channel'"
# Commas and equal signs in double quotes belong to a name: a["b,c"]=d, e
_PARTS = re.compile(r'(?:[^,"]|"(?:[^"\\]|\\.)*"?)+')
_CONDITION = re.compile(
    r'\s*(?P<path>(?:[^="\s]|"(?:[^"\\]|\\.)*")+)\s*(?:=(?P<text>.*))?', re.DOTALL
)
_ROW_CONDITION = re.compile(
    r'\s*(?P<path>(?:[^=<>!"\s]|"(?:[^"\\]|\\.)*")+)\s*(?:(?P<operator>[<>!]=|[<>=])(?P<text>.*))?',
    re.DOTALL,
)


def connector_of(option: Option) -> str:
    """Return the kind of the connector: one of ours, or a name that a plug-in may have."""
    name = option.value.strip()
    kinds = tuple(ConnectorKind)
    if name in kinds:
        return name
    meant = misspelled(name)
    if meant:
        refuse_option(
            option, f"there is no connector {option.value!r:.40}", listed_or_close(meant, kinds)
        )
    if not is_connector_name(name):
        refuse_option(
            option,
            f"{option.value!r:.40} is not the name of a connector",
            f"connector = 'mqtt'; ours: {', '.join(kinds)}; plug-ins have names such as 'my_meter'",
        )
    return name


def format_of(option: Option | None, kind: str) -> PayloadFormat:
    """Return the format of the payloads; a connector that hands over records has only FIELDS."""
    records = hands_over_records(kind)
    if option is None:
        return PayloadFormat.FIELDS if records else PayloadFormat.JSON
    formats = tuple(PayloadFormat)
    name = option.value.strip().lower()
    if name not in formats:
        refuse_option(
            option, f"there is no format {option.value!r:.40}", listed_or_close(name, formats)
        )
    if records and name != PayloadFormat.FIELDS:
        refuse_option(
            option,
            f"connector {kind} reads values by their addresses and has no payload format",
            "remove format",
        )
    return PayloadFormat(name)


def stripped(option: Option | None) -> str:
    """Return the text of an option without spaces around it, empty where it is missing."""
    return option.value.strip() if option is not None else ""


def endpoint_of(option: Option | None) -> str:
    """Return the name of the endpoint, empty where the option is missing."""
    name = stripped(option)
    if option is not None and not is_endpoint_name(name):
        refuse_option(
            option,
            f"{option.value!r:.40} is not the name of an endpoint",
            "endpoint = 'home': a name in the gateways' settings, which hold the address",
        )
    return name


def gateways_of(option: Option | None) -> tuple[str, ...]:
    """Return the gateways that serve the source; none stands for all that have its endpoint."""
    if option is None:
        return ()
    names = tuple(part.strip() for part in option.value.split(","))
    example = "gateways = 'west, east'"
    if len(names) > MAX_GATEWAYS:
        refuse_option(option, f"gateways names more than {MAX_GATEWAYS} gateways", example)
    for name in names:
        if not is_site_name(name):
            refuse_option(option, f"gateways: {name!r:.40} is not the name of a gateway", example)
    return tuple(dict.fromkeys(names))


def only_of(option: Option | None) -> tuple[tuple[str, str | None], ...]:
    """Return the conditions on payloads: a path, and its text or None for any."""
    if option is None:
        return ()
    parts = _PARTS.findall(option.value)
    if len(parts) > MAX_ONLY:
        refuse_option(option, f"only has more than {MAX_ONLY} conditions", ONLY_EXAMPLE)
    found: dict[str, str | None] = {}
    for part in parts:
        condition = _CONDITION.fullmatch(part)
        if condition is None:
            refuse_option(
                option, f"only: {part.strip()!r:.40} is no condition on a field", ONLY_EXAMPLE
            )
        path, text = condition["path"].strip(), condition["text"]
        if path in found:
            refuse_option(option, f"only names {path!r:.40} twice", ONLY_EXAMPLE)
        found[path] = None if text is None else _unquoted(text.strip())
    if not found:
        refuse_option(option, "only: a condition is missing", ONLY_EXAMPLE)
    return tuple(found.items())


def only_rows_of(option: Option | None) -> tuple[tuple[str, str, str], ...]:
    """Return the conditions on rows: a path, an operator (empty: the field is there) and a text."""
    if option is None:
        return ()
    parts = _PARTS.findall(option.value)
    if len(parts) > MAX_ONLY:
        refuse_option(option, f"only_rows has more than {MAX_ONLY} conditions", ONLY_ROWS_EXAMPLE)
    found: list[tuple[str, str, str]] = []
    for part in parts:
        condition = _ROW_CONDITION.fullmatch(part)
        if condition is None:
            refuse_option(
                option,
                f"only_rows: {part.strip()!r:.40} is no condition on a field",
                ONLY_ROWS_EXAMPLE,
            )
        text = _unquoted((condition["text"] or "").strip())
        found.append((condition["path"].strip(), condition["operator"] or "", text))
    if not found:
        refuse_option(option, "only_rows: a condition is missing", ONLY_ROWS_EXAMPLE)
    return tuple(found)


def _unquoted(text: str) -> str:
    """Return a text that stands in double quotes where it holds a comma."""
    is_quoted = len(text) > 1 and text[0] == text[-1] == '"'
    return text[1:-1] if is_quoted else text


def payload_delimiter(option: Option | None) -> str:
    """Return the delimiter of payloads in CSV."""
    if option is None:
        return ","
    check_value(option, delimiter_of, "delimiter = ';'")
    return delimiter_of(option.value)


def has_header(option: Option | None) -> bool:
    """Whether payloads in CSV begin with a header line."""
    if option is None:
        return True
    check_value(option, truth_of, "header = 'false' for payloads without a header line")
    return truth_of(option.value)
