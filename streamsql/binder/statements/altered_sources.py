"""ALTER SOURCE: a short form of CREATE OR REPLACE SOURCE with a column more or less, or options."""

from dataclasses import replace

from streamsql.catalog.catalog import Catalog, check_not_system, kind_of
from streamsql.catalog.definitions import SourceDefinition
from streamsql.errors import BindingError, InternalError
from streamsql.syntax import parse_statement
from streamsql.syntax.cursor import did_you_mean
from streamsql.syntax.source_text import source_text
from streamsql.syntax.statements import AlterSource, ColumnDefinition, CreateSource, Name, Option

SETTABLE = ("keep", "rollup")
"""Options that ALTER SOURCE … SET changes: no row that queries see depends on them."""


def altered_source(statement: AlterSource, catalog: Catalog) -> CreateSource:
    """Return CREATE OR REPLACE SOURCE with the whole definition that ALTER SOURCE asks for.

    Its text is canonical. Places of the column that is added are those of the ALTER statement.

    Raises:
        BindingError: There is no such source, or it may not be read, or there is no such column, or
            the column cannot go, or an option cannot be set.
    """
    old = _source(statement, catalog)
    columns, options = old.columns, old.options
    if statement.added is not None:
        columns = (*old.columns, _checked(statement.added, old))
    elif statement.dropped is not None:
        columns = _without(statement.dropped, old)
    elif statement.options:
        options = _with_options(old.options, statement.options)
    else:
        raise InternalError("ALTER SOURCE without a change")
    new = replace(
        old,
        name=Name(old.name.text, statement.name.span),
        span=statement.span,
        script=statement.script,
        columns=columns,
        options=options,
        replace=True,
    )
    return replace(new, text=source_text(new))


def _with_options(old: tuple[Option, ...], given: tuple[Option, ...]) -> tuple[Option, ...]:
    """Return options with those that ALTER SOURCE … SET gives in place of the old ones."""
    for option in given:
        if option.name not in SETTABLE:
            raise BindingError(
                f"option {option.name!r:.40} cannot be set",
                span=option.span,
                hint=f"{' and '.join(SETTABLE)} can; CREATE OR REPLACE SOURCE with the whole "
                "definition changes all others",
                code="bad_option",
            )
    new = {option.name: option for option in given}
    kept = tuple(option for option in old if option.name not in new)
    return (*kept, *new.values())


def _source(statement: AlterSource, catalog: Catalog) -> CreateSource:
    name = statement.name
    check_not_system(name.text, name.span)
    definition = catalog.find(name.text)
    if not isinstance(definition, SourceDefinition) or definition.is_table:
        names = tuple(source.name for source in catalog.sources)
        raise BindingError(
            f"there is no source {name.text!r}",
            span=name.span,
            hint=f"it is a {kind_of(definition)}"
            if definition is not None
            else did_you_mean(name.text, names, "SHOW SOURCES lists them"),
            code="unknown_relation",
        )
    # Whoever only checks a text would see its columns in errors and in later statements.
    catalog.check_read(definition.name, name.span)
    created = parse_statement(definition.text)
    if not isinstance(created, CreateSource):
        raise InternalError(f"source {definition.name} was not made by CREATE SOURCE")
    return created


def _checked(column: ColumnDefinition, old: CreateSource) -> ColumnDefinition:
    if any(known.name.text == column.name.text for known in old.columns):
        raise BindingError(
            f"source {old.name.text!r} has a column {column.name.text!r} already",
            span=column.name.span,
            hint="choose another name, or CREATE OR REPLACE SOURCE with the whole definition",
            code="duplicate_name",
        )
    return column


def _without(dropped: Name, old: CreateSource) -> tuple[ColumnDefinition, ...]:
    names = [column.name.text for column in old.columns]
    if dropped.text not in names:
        raise BindingError(
            f"there is no column {dropped.text!r}",
            span=dropped.span,
            hint=did_you_mean(dropped.text, names, f"columns: {', '.join(names)}"),
            code="unknown_column",
        )
    use = _use(dropped.text, old)
    if use:
        raise BindingError(
            f"column {dropped.text!r} is {use}",
            span=dropped.span,
            hint="CREATE OR REPLACE SOURCE with the whole definition",
            code="in_use",
        )
    return tuple(column for column in old.columns if column.name.text != dropped.text)


def _use(name: str, old: CreateSource) -> str:
    """Return what a source cannot do without a column; empty: it is only read."""
    if len(old.columns) == 1:
        return "the only one"
    if any(key.text == name for key in old.key):
        return "part of the key"
    if old.watermark is not None and old.watermark.column.text == name:
        return "the event time of the WATERMARK"
    colocate = next((o.value for o in old.options if o.name == "colocate"), "")
    if name in {part.strip().lower() for part in colocate.split(",")}:
        return "named by the option colocate"
    return ""
