"""CREATE SINK: where an answer goes, under which key, and in which form."""

from streamsql.algebra.column_origins import column_units
from streamsql.algebra.operators import Plan
from streamsql.algebra.streams import Emit, is_final
from streamsql.binder.names.bound_query import BoundQuery
from streamsql.binder.statements.displays_and_alarms import key_positions
from streamsql.binder.statements.options.source_options import listed_or_close, refuse_option
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.connectors import is_endpoint_name
from streamsql.catalog.sink_definitions import (
    SinkConnector,
    SinkDefinition,
    SinkFormat,
    SinkMode,
    is_discovery_prefix,
)
from streamsql.catalog.topic_template import TopicTemplate
from streamsql.data.durations import parse_duration
from streamsql.data.schema import Schema
from streamsql.errors import BindingError
from streamsql.mapping.units import unit_named
from streamsql.syntax.cursor import did_you_mean
from streamsql.syntax.statements import CreateSink, Name, Option

_COMMON = ("connector", "endpoint", "key", "format", "units")
OPTIONS = {
    SinkConnector.MQTT: (*_COMMON, "topic", "discovery", "discovery_prefix"),
    SinkConnector.WEBHOOK: (*_COMMON, "batch", "tries", "timeout"),
}
"""Options by connector."""
HOME_ASSISTANT = "homeassistant"
MAX_BATCH = 1_000
MAX_TRIES = 100
MAX_TIMEOUT = 120_000_000
_EXAMPLES = {
    SinkConnector.MQTT: "WITH (connector = 'mqtt', topic = 'building/free/{desk}')",
    SinkConnector.WEBHOOK: "WITH (connector = 'webhook', endpoint = 'orders', key = 'desk')",
}

Options = dict[str, Option]


def define_sink(statement: CreateSink, bound: BoundQuery, catalog: Catalog) -> SinkDefinition:
    """Check CREATE SINK, whose query is bound already.

    Raises:
        BindingError: An option is missing, unknown or wrong, or does not suit the query.
    """
    options = {option.name: option for option in statement.options}
    connector = _connector(statement, options)
    mode = SinkMode.UPSERT
    if bound.emit == Emit.STREAM or is_final(bound.plan):
        mode = SinkMode.APPEND
    topic = _topic(options, bound.schema) if connector == SinkConnector.MQTT else ""
    endpoint = _endpoint(statement, options, connector)
    if topic:
        _check_topic_is_free(options["topic"], endpoint, catalog)
    return SinkDefinition(
        name=statement.name.text,
        query=statement.query.text,
        connector=connector,
        mode=mode,
        endpoint=endpoint,
        key=_key(statement, options, mode, topic, bound.schema),
        format=_format(options),
        topic=topic,
        discovery=_discovery(options, mode),
        units=_units(options, bound.plan),
        batch=_whole(options, "batch", 100, MAX_BATCH),
        tries=_whole(options, "tries", 10, MAX_TRIES),
        timeout=_timeout(options),
        text=statement.text,
    )


def _connector(statement: CreateSink, options: Options) -> SinkConnector:
    given = options.get("connector")
    known = tuple(SinkConnector)
    if given is None:
        raise BindingError(
            f"sink {statement.name.text!r} needs a connector",
            span=statement.name.span,
            hint=_EXAMPLES[SinkConnector.MQTT],
            code="missing_option",
        )
    if given.value not in known:
        refuse_option(
            given,
            f"there is no connector {given.value!r:.40} for sinks",
            listed_or_close(given.value, known),
        )
    connector = SinkConnector(given.value)
    for option in statement.options:
        if option.name not in OPTIONS[connector]:
            raise BindingError(
                f"a sink of connector {connector} has no option {option.name!r:.40}",
                span=option.span,
                hint=listed_or_close(option.name, OPTIONS[connector]),
                code="unknown_option",
            )
    return connector


def _endpoint(statement: CreateSink, options: Options, connector: SinkConnector) -> str:
    given = options.get("endpoint")
    if given is None:
        if connector == SinkConnector.MQTT:
            return ""
        raise BindingError(
            f"sink {statement.name.text!r} needs an endpoint: the settings of the console say "
            "which address and secret the name stands for",
            span=statement.name.span,
            hint=_EXAMPLES[connector],
            code="missing_option",
        )
    if not is_endpoint_name(given.value):
        refuse_option(
            given,
            f"{given.value!r:.80} is not the name of an endpoint",
            "the settings of the console hold the address, under a name of letters and digits",
        )
    return given.value


def _topic(options: Options, schema: Schema) -> str:
    given = options.get("topic")
    if given is None:
        connector = options["connector"]
        raise BindingError(
            "a sink of connector mqtt needs a topic",
            span=connector.span,
            hint=_EXAMPLES[SinkConnector.MQTT],
            code="missing_option",
        )
    try:
        template = TopicTemplate(given.value)
    except ValueError as error:
        refuse_option(given, f"topic: {error}", "topic = 'building/free/{desk}'")
    for name in template.names:
        _position(name, schema, given)
    return given.value


def _check_topic_is_free(topic: Option, endpoint: str, catalog: Catalog) -> None:
    """Refuse topics that another sink may write, too: each would replace the other's rows."""
    template = TopicTemplate(topic.value)
    for sink in catalog.sinks:
        if sink.topic and sink.endpoint == endpoint and template.overlaps(sink.template()):
            raise BindingError(
                f"sink {sink.name} writes topics of {topic.value!r:.80}, too: its own are "
                f"{sink.topic!r:.80}",
                span=topic.value_span,
                hint=f"add a level, such as '{topic.value}/NAME', or DROP SINK {sink.name} first",
                code="topic_in_use",
            )


def _position(name: str, schema: Schema, option: Option) -> None:
    if name in schema.names:
        return
    refuse_option(
        option,
        f"{option.name}: the result has no column {name!r:.60}",
        did_you_mean(name, schema.names, f"columns: {', '.join(schema.names)}"),
    )


def _key(
    statement: CreateSink, options: Options, mode: SinkMode, topic: str, schema: Schema
) -> tuple[str, ...]:
    given = options.get("key")
    if mode == SinkMode.APPEND:
        if given is not None:
            refuse_option(
                given,
                "rows of a stream are never replaced, so they have no key",
                "remove key, or read a relation",
            )
        return ()
    named = TopicTemplate(topic).names if topic else ()
    if given is None:
        if not topic:
            raise BindingError(
                f"sink {statement.name.text!r} needs a key: the receiver gets the newest row of "
                "each",
                span=statement.name.span,
                hint="key = 'desk', or send changes: FROM ISTREAM(SELECT …)",
                code="missing_option",
            )
        return named
    names = tuple(part.strip() for part in given.value.split(","))
    span = given.value_span
    key_positions(tuple(Name(name, span) for name in names), schema)
    if len(set(names)) < len(names):
        refuse_option(given, "key names a column twice", "name it once")
    if topic and set(names) != set(named):
        refuse_option(
            given,
            "key and topic name different columns, but each key has a topic of its own",
            f"key = '{', '.join(named)}', or leave key out" if named else "name them in the topic",
        )
    return names


def _format(options: Options) -> SinkFormat:
    given = options.get("format")
    if given is None:
        return SinkFormat.JSON
    known = tuple(SinkFormat)
    if given.value not in known:
        refuse_option(
            given,
            f"there is no format {given.value!r:.40} for sinks",
            listed_or_close(given.value, known),
        )
    return SinkFormat(given.value)


def _discovery(options: Options, mode: SinkMode) -> str:
    given, prefix = options.get("discovery"), options.get("discovery_prefix")
    if given is None:
        if prefix is not None:
            refuse_option(
                prefix, "discovery_prefix without discovery", "discovery = 'homeassistant'"
            )
        return ""
    if given.value != HOME_ASSISTANT:
        refuse_option(
            given, f"there is no discovery {given.value!r:.40}", "discovery = 'homeassistant'"
        )
    if mode == SinkMode.APPEND:
        refuse_option(
            given, "a stream has no state that Home Assistant could show", "read a relation"
        )
    form = options.get("format")
    if form is not None and form.value != SinkFormat.JSON:
        refuse_option(form, "Home Assistant reads JSON", "remove format")
    if prefix is None:
        return HOME_ASSISTANT
    if not is_discovery_prefix(prefix.value):
        refuse_option(
            prefix,
            f"{prefix.value!r:.80} is no level of a topic",
            "discovery_prefix = 'homeassistant'",
        )
    return prefix.value


def _units(options: Options, plan: Plan) -> tuple[str, ...]:
    """Return the unit of each column: as given, or as its source declares it."""
    units = list(column_units(plan))
    given = options.get("units")
    for part in given.value.split(",") if given is not None else ():
        name, equals, unit = (text.strip() for text in part.partition("="))
        if given is None or not equals:
            raise _bad_units(given)
        _position(name, plan.schema, given)
        try:
            units[plan.schema.index_of(name)] = unit_named(unit).name
        except ValueError as error:
            refuse_option(given, f"units: {error}", "units = 'temperature=Cel, power=W'")
    return tuple(units)


def _bad_units(given: Option | None) -> BindingError:
    return BindingError(
        "units: a part is not column=unit",
        span=given.value_span if given is not None else None,
        hint="units = 'temperature=Cel, power=W'",
        code="bad_option",
    )


def _whole(options: Options, name: str, default: int, most: int) -> int:
    given = options.get(name)
    if given is None:
        return default
    value = int(given.value) if given.value.isdecimal() and len(given.value) < 10 else 0
    if not 1 <= value <= most:
        refuse_option(
            given,
            f"{name}: {given.value!r:.40} is not a whole number from 1 to {most}",
            f"{name} = {default}",
        )
    return value


def _timeout(options: Options) -> int:
    given = options.get("timeout")
    if given is None:
        return 10_000_000
    try:
        micros = parse_duration(given.value)
    except ValueError:
        micros = 0
    if not 0 < micros <= MAX_TIMEOUT:
        refuse_option(
            given,
            f"timeout: {given.value!r:.40} is not a duration up to 2 min",
            "timeout = '10 s'",
        )
    return micros
