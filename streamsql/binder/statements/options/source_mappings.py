"""CREATE SOURCE … WITH (connector = …): how its rows come from devices."""

import re
from collections.abc import Iterator, Mapping

import msgspec

from streamsql.binder.statements.options.column_mappings import column_mapping
from streamsql.binder.statements.options.mapping_options import (
    ONLY_EXAMPLE,
    ONLY_ROWS_EXAMPLE,
    connector_of,
    endpoint_of,
    format_of,
    gateways_of,
    has_header,
    only_of,
    only_rows_of,
    payload_delimiter,
    stripped,
)
from streamsql.binder.statements.options.source_options import (
    KEEPING_OPTIONS,
    MAPPING_OPTIONS,
    check_value,
    listed_or_close,
    refuse_option,
)
from streamsql.catalog.connectors import (
    MESSAGE_CONNECTORS,
    SOURCE_OPTIONS,
    ConnectorKind,
)
from streamsql.catalog.definitions import SourceDefinition
from streamsql.errors import BindingError
from streamsql.mapping.mapper import Mapper
from streamsql.mapping.payloads.payload_reader import PayloadReader
from streamsql.mapping.payloads.payload_readers import reader_of
from streamsql.mapping.row_columns import column_paths, conditions_of, fact_columns, topic_names
from streamsql.mapping.row_conditions import row_conditions_of
from streamsql.mapping.source_mapping import PayloadFormat, SourceMapping
from streamsql.mapping.sparkplug.sparkplug_pattern import ALL_TOPICS, SparkplugPattern
from streamsql.mapping.topic_pattern import FACTS, TopicPattern
from streamsql.redaction import holds_secret
from streamsql.syntax.cursor import nearest
from streamsql.syntax.statements import ColumnDefinition, CreateSource, Option

MAX_OPTION = 4_000
"""Characters of an option of a connector."""
_NOT_OF_SPARKPLUG = {
    "share": "a gateway needs all messages of a Sparkplug node, not its share of them",
    "availability": "Sparkplug's nodes and devices announce their deaths themselves",
}
_SECRET_NAME = re.compile(
    r"pass(word|wd|phrase)|secret|token|credential|community|headers|authorization|api_?key"
)


def source_mapping(statement: CreateSource) -> SourceMapping | None:
    """Return how rows of a source come from devices; None where no connector is named.

    Raises:
        BindingError: An option or a column's clause is wrong.
    """
    options = {option.name: option for option in statement.options}
    connector = options.get("connector")
    if connector is None:
        _refuse_clauses(statement)
        return None
    kind = connector_of(connector)
    payloads = format_of(options.get("format"), kind)
    mapping = SourceMapping(
        connector=kind,
        endpoint=endpoint_of(options.get("endpoint")),
        gateways=gateways_of(options.get("gateways")),
        format=payloads,
        rows=stripped(options.get("rows")),
        only=only_of(options.get("only")),
        only_rows=only_rows_of(options.get("only_rows")),
        delimiter=payload_delimiter(options.get("delimiter")),
        header=has_header(options.get("header")),
        options=_own_options(statement, kind),
    )
    if kind == ConnectorKind.MQTT:
        mapping = _with_topic(mapping, connector, options)
    if _may_be_addresses(mapping, options):
        # Only the gateways know the class of a plug-in. What is no path can only be an address.
        try:
            return _with_columns(statement, mapping, options)
        except BindingError:
            by_address = msgspec.structs.replace(mapping, format=PayloadFormat.FIELDS)
            return _with_columns(statement, by_address, options)
    return _with_columns(statement, mapping, options)


def _may_be_addresses(mapping: SourceMapping, options: Mapping[str, Option]) -> bool:
    """Whether FROM may hold addresses of a plug-in, though no format says so."""
    is_ours = mapping.connector in tuple(ConnectorKind)
    says_nothing = not (mapping.rows or mapping.only or mapping.only_rows)
    return not is_ours and says_nothing and "format" not in options


def _with_columns(
    statement: CreateSource, mapping: SourceMapping, options: Mapping[str, Option]
) -> SourceMapping:
    reader = _reader(mapping, options)
    for column in statement.columns:
        _check_place(column, mapping)
    columns = tuple(column_mapping(column, reader) for column in statement.columns)
    return msgspec.structs.replace(mapping, columns=columns)


def check_compiles(statement: CreateSource, definition: SourceDefinition) -> None:
    """Check that gateways will be able to read a declared source's devices.

    Raises:
        BindingError: They will not.
    """
    if definition.mapping is None:
        return
    try:
        mapper = Mapper(definition)
    except ValueError as error:
        raise BindingError(str(error), span=statement.name.span, code="bad_clause") from None
    options = {option.name: option for option in statement.options}
    if definition.mapping.connector == ConnectorKind.MQTT and "availability" in options:
        _check_availability(options["availability"], options.get("topic"), definition, mapper)


def mapping_warnings(definition: SourceDefinition) -> tuple[str, ...]:
    """Return what is likely a mistake in how a declared source's rows come from devices."""
    mapping = definition.mapping
    if mapping is None:
        return ()
    paths = [column.path for column in mapping.columns] + [path for path, _ in mapping.only]
    paths += [path for path, _, _ in mapping.only_rows]
    facts = {path.removeprefix("@") for path in paths if path.startswith("@")}
    given = fact_columns(mapping)
    unread = [
        f"{{{name}}} feeds no column of {definition.name}; add the column {name} TEXT, or "
        f"FROM '@{name}' to another"
        for name in sorted(topic_names(mapping) - facts - set(definition.schema.names))
    ]
    doubtful = [
        f"not every connector knows @{fact} of a message; did you mean @{close}?"
        for fact in sorted(facts - given - FACTS)
        if (close := nearest(fact, sorted(FACTS), 0.75))
    ]
    return (*unread, *doubtful, *_rows_for_ever(definition, mapping))


def _rows_for_ever(definition: SourceDefinition, mapping: SourceMapping) -> Iterator[str]:
    """Yield a warning where deaths of Sparkplug find no rows."""
    topic = mapping.option("topic")
    is_sparkplug = mapping.format == PayloadFormat.SPARKPLUG and topic
    if not is_sparkplug or not definition.key or mapping.connector != ConnectorKind.MQTT:
        return
    facts = {path[1:] for _, path in column_paths(mapping, definition.schema) if path[:1] == "@"}
    telling = SparkplugPattern(str(topic)).row_facts
    if not facts & telling:
        name = "device" if "device" in telling else "node"
        yield (
            f"rows of {definition.name} stay when their {name} goes offline: no column names the "
            f"{name}; add the column {name} TEXT"
        )


def _refuse_clauses(statement: CreateSource) -> None:
    """Refuse clauses of columns where no connector reads anything."""
    for column in statement.columns:
        for clause in column.clauses:
            raise BindingError(
                f"{clause.word} describes how a connector reads {column.name.text!r:.40}, but the "
                "source has no connector",
                span=clause.span,
                hint="add WITH (connector = 'mqtt', topic = '…'), or remove it",
                code="bad_clause",
            )


def _own_options(statement: CreateSource, kind: str) -> tuple[tuple[str, str], ...]:
    """Return the options that the connector itself reads; gateways check their values."""
    known = SOURCE_OPTIONS.get(kind)
    own = [
        option
        for option in statement.options
        if option.name not in MAPPING_OPTIONS and option.name not in KEEPING_OPTIONS
    ]
    for option in own:
        if len(option.value) > MAX_OPTION:
            refuse_option(
                option,
                f"{option.name} has {len(option.value)} characters; the max is {MAX_OPTION}",
                "shorten it",
            )
        if _SECRET_NAME.search(option.name) or holds_secret(option.value):
            refuse_option(
                option,
                f"{option.name} holds a secret, and everybody who reads definitions would see it",
                "store it in the endpoint: pando endpoint add GATEWAY NAME KIND --ask password",
            )
        if known is not None and option.name not in known:
            refuse_option(
                option,
                f"sources of connector {kind} have no option {option.name!r:.40}",
                listed_or_close(option.name, (*known, *MAPPING_OPTIONS, *KEEPING_OPTIONS)),
            )
    return tuple((option.name, option.value) for option in own)


def _with_topic(
    mapping: SourceMapping, connector: Option, options: Mapping[str, Option]
) -> SourceMapping:
    """Return the mapping of a source of MQTT with its topic, which is checked."""
    topic = options.get("topic")
    if mapping.format == PayloadFormat.SPARKPLUG:
        for name in ("share", "availability"):
            if name in options:
                refuse_option(options[name], f"{name}: {_NOT_OF_SPARKPLUG[name]}", f"remove {name}")
        if topic is None:
            everything = (("topic", ALL_TOPICS), *mapping.options)
            return msgspec.structs.replace(mapping, options=everything)
        check_value(topic, SparkplugPattern, f"topic = {ALL_TOPICS!r}, or remove topic")
        return mapping
    example = "topic = 'tele/{device}/SENSOR'"
    if topic is None:
        refuse_option(connector, "connector mqtt needs the option topic", f"add {example}")
    check_value(topic, TopicPattern, f"{example}; + stands for one level, # for all further ones")
    return mapping


def _check_availability(
    option: Option, topic: Option | None, definition: SourceDefinition, mapper: Mapper
) -> None:
    """Refuse an option `availability` that can withdraw no row."""
    check_value(option, TopicPattern, "availability = 'tele/{device}/LWT'")
    names = TopicPattern(option.value).names
    if not definition.key:
        refuse_option(
            option,
            "availability withdraws the rows of a device that goes offline, but rows of "
            f"{definition.name} cannot be withdrawn: it has no KEY",
            "add KEY (…) with the columns that identify a row, or remove availability",
        )
    if topic is not None and (extra := set(names) - set(TopicPattern(topic.value).names)):
        refuse_option(
            option,
            f"availability names {{{min(extra)}}}, which topic does not",
            "use the same name for a device in both, as in 'tele/{device}/SENSOR' and "
            "'tele/{device}/LWT'",
        )
    if names and not mapper.given(dict.fromkeys(names, "")):
        refuse_option(
            option,
            f"availability identifies a device by {{{names[0]}}}, which is in no column of "
            f"{definition.name}: its rows cannot be found",
            f"add the column {names[0]} TEXT, or FROM '@{names[0]}' to another",
        )


def _reader(mapping: SourceMapping, options: Mapping[str, Option]) -> PayloadReader:
    """Return the reader of the payloads; refuse the option that makes it impossible."""
    for name in ("delimiter", "header"):
        if name in options and mapping.format != PayloadFormat.CSV:
            refuse_option(
                options[name],
                f"{name} does not apply to payloads in the format {mapping.format}",
                f"remove {name}, or format = 'csv'",
            )
    bare = msgspec.structs.replace(mapping, rows="", only=(), only_rows=())
    try:
        reader = reader_of(bare)
    except ValueError as error:
        hint = f"formats: {', '.join(PayloadFormat)}"
        refuse_option(options.get("format", options["connector"]), str(error), hint)
    try:
        reader = reader_of(msgspec.structs.replace(bare, rows=mapping.rows))
    except ValueError as error:
        refuse_option(options["rows"], str(error), "rows = 'sensors[*]', or remove rows")
    if mapping.only:
        only = msgspec.structs.replace(mapping, rows="")
        check_value(
            options["only"], lambda _: (reader_of(only), conditions_of(only, reader)), ONLY_EXAMPLE
        )
    if mapping.only_rows:
        check_value(
            options["only_rows"], lambda _: row_conditions_of(mapping, reader), ONLY_ROWS_EXAMPLE
        )
    return reader


def _check_place(column: ColumnDefinition, mapping: SourceMapping) -> None:
    """Refuse the place of a row in a payload that is one row."""
    is_one_row = not mapping.rows and mapping.format in (PayloadFormat.JSON, PayloadFormat.CBOR)
    if not is_one_row or mapping.connector not in MESSAGE_CONNECTORS:
        return
    for clause in column.clauses:
        if clause.word == "FROM" and clause.value in ("@key", "@index"):
            raise BindingError(
                f"column {column.name.text}: {clause.value} identifies a row "
                "of a payload, but here each payload is one row",
                span=clause.value_span,
                hint="add the option rows = 'sensors[*]', the path of the array or object",
                code="bad_clause",
            )
