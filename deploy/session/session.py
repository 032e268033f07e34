"""A local session: a catalog, a history and an engine to ask."""

import re
from dataclasses import replace
from pathlib import Path

from deploy.session.engines import Executor, executor_for
from deploy.session.history import History
from deploy.session.session_explain import answer, explain
from deploy.session.session_results import Result
from deploy.session.standing import StandingDefinitions
from deploy.session.table_updates import changed_table, inserted_rows
from federated_optimizer.coordinator.contract.coordinator_model import Change, StatementResult
from federated_optimizer.coordinator.queries.answers.upserts import UpsertEnvelope
from federated_optimizer.coordinator.queries.planning.inner_query import query_of
from federated_optimizer.coordinator.statements.definition_drops import (
    Reader,
    dropped_definition,
    refuse_used,
    users_of,
)
from federated_optimizer.coordinator.statements.listings import describe_definition, show
from federated_optimizer.coordinator.statements.source_replacement import (
    broken_readers,
    refuse_broken,
)
from streamsql.algebra.operators import Scan, walk_plan
from streamsql.algebra.operators.orders import in_order
from streamsql.algebra.scalar_functions.scalar import compile_predicate
from streamsql.binder import (
    BoundQuery,
    Creating,
    altered_source,
    bind_delete,
    bind_insert,
    bind_query,
    define,
    key_positions,
    mapping_warnings,
    refreshed,
)
from streamsql.catalog.catalog import Catalog, kind_of
from streamsql.catalog.definitions import Definition, SourceDefinition, ViewDefinition
from streamsql.catalog.functions import FunctionDefinition
from streamsql.catalog.sampling import Sampler, sampler_of
from streamsql.catalog.system import system_source
from streamsql.catalog.table_options import TableSource
from streamsql.completion import complete
from streamsql.data.delta import Delta
from streamsql.data.events import SourceEvent
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row, Value, timestamp_text
from streamsql.errors import BindingError, FederationError, UnsupportedError
from streamsql.library import library_views
from streamsql.reference.evaluate import relation_rows
from streamsql.reference.reference_database import contents
from streamsql.syntax import parse_script, parse_statement
from streamsql.syntax.row_question_statements import ExplainConfidence, ExplainWhatIf, ExplainWhy
from streamsql.syntax.statement_parsers.change_statements import Merge, Update
from streamsql.syntax.statements import (
    AdvanceTime,
    AlterSource,
    CreateAlarm,
    CreateDisplay,
    CreateFunction,
    CreateSource,
    CreateView,
    Delete,
    Describe,
    Drop,
    Explain,
    Insert,
    Query,
    Refresh,
    Show,
    Statement,
    Subscribe,
)

_LISTINGS = "SHOW SOURCES, TABLES, VIEWS, FUNCTIONS, ALARMS or DISPLAYS"


class LocalSession:
    """Runs statements without broker or services.

    Args:
        engine: "stream", "reference" or "spark".
        sites: Sites the stream engine is partitioned over.
    """

    def __init__(self, engine: str = "stream", sites: int = 1) -> None:
        self.catalog = Catalog(library_views())
        self.history = History()
        self._sites = sites
        self._standing = StandingDefinitions(self.catalog, self.history, self._answer)
        self._samplers: dict[str, Sampler | None] = {}
        self._executor: Executor = executor_for(engine, sites)

    def close(self) -> None:
        """Free the engine."""
        self._executor.close()

    def run(self, text: str) -> list[Result]:
        """Run a script and return one result per statement.

        Raises:
            FederationError: The first statement that fails; earlier ones stay done.
        """
        return [self.execute(statement) for statement in parse_script(text)]

    def execute(self, statement: Statement) -> Result:
        """Run one statement.

        Raises:
            FederationError: It is wrong, or the engine refuses it.
        """
        match statement:
            case CreateSource(replace=True):
                return self._changed(self._create(statement))
            case AlterSource():
                return self._changed(self._create(altered_source(statement, self.catalog)))
            case CreateSource() | CreateView() | CreateFunction() | CreateDisplay() | CreateAlarm():
                return self._create(statement)
            case Drop():
                return self._drop(statement)
            case Insert() | Delete() | Update() | Merge() | Refresh():
                return self._changed(self._change(statement))
            case AdvanceTime(to=to, by=by):
                self.history.advance(to if to is not None else self.history.now + (by or 0))
                return self._changed(Result(message=f"time is {timestamp_text(self.history.now)}"))
            case Query():
                return self._select(bind_query(statement, self.catalog))
            case Subscribe():
                return self._subscribe(statement)
            case Explain():
                return explain(statement, self.catalog, self._sites)
            case ExplainWhy() | ExplainWhatIf() | ExplainConfidence():
                return answer(statement, self.catalog, self.history)
            case Show():
                return self._show(statement)
            case Describe():
                return self._describe(statement)
            case _:
                words = re.sub("(?<=[a-z])(?=[A-Z])", " ", type(statement).__name__).upper()
                raise UnsupportedError(
                    f"{words} needs a federation", span=statement.span, code="needs_federation"
                )

    def _create(self, statement: Creating) -> Result:
        definition = define(statement, self.catalog)
        if isinstance(definition, FunctionDefinition):
            definition.check_installed()
        rows = _stored_rows(definition)
        replaced = self._give_way(statement, definition)
        self.catalog.define(definition, replace=replaced)
        if rows:
            events = tuple(SourceEvent(row, self.history.now) for row in rows)
            self.history.record(definition.name, events)
        try:
            self._standing.begin(definition)
        except FederationError:
            self.catalog.drop(definition.name)
            raise
        done = "replaced; its rows are discarded" if replaced else "created"
        warned = mapping_warnings(definition) if isinstance(definition, SourceDefinition) else ()
        return Result(message=f"{kind_of(definition)} {definition.name} {done}", warnings=warned)

    def _give_way(self, statement: Creating, new: Definition) -> bool:
        """Discard the rows of the source that a definition replaces; return whether there is one.

        Raises:
            BindingError: Something that reads the source could not go on.
        """
        old = self.catalog.find(new.name)
        if not isinstance(old, SourceDefinition) or not isinstance(new, SourceDefinition):
            return False
        alarms = [
            Reader("alarm", a.name, a.query, self._bound(a.query).schema)
            for a in self.catalog.alarms
        ]
        refuse_broken(statement.name, broken_readers(old, new, self.catalog, alarms))
        self._samplers.pop(old.name, None)
        self.history.discard(old.name)
        return True

    def _bound(self, text: str) -> BoundQuery:
        return bind_query(query_of(parse_statement(text)), self.catalog)

    def suggest(self, text: str, place: int) -> list[str]:
        """Return what may stand at a place of a text that is being typed."""
        relations: dict[str, tuple[str, ...]] = {}
        functions = []
        for found in self.catalog:
            if isinstance(found, FunctionDefinition):
                functions.append(found.usage)
            elif isinstance(found, ViewDefinition):
                relations[found.name] = found.columns or ()
            elif isinstance(found, SourceDefinition):
                relations[found.name] = found.schema.names
        displays = [display.name for display in self.catalog.displays]
        return [found.label for found in complete(text, place, relations, functions, displays)]

    def _select(self, bound: BoundQuery) -> Result:
        relation = self._answer(bound)
        return Result(
            schema=bound.schema,
            rows=in_order(relation_rows(relation), bound.order),
            warnings=bound.warnings,
        )

    def _subscribe(self, statement: Subscribe) -> Result:
        bound = bind_query(statement.inner, self.catalog)
        key = key_positions(statement.key, bound.schema, bound.emit)
        if not statement.snapshot:
            raise UnsupportedError(
                "a local session reads only current rows and does not wait for changes, so "
                "SUBSCRIBE needs SNAPSHOT",
                span=statement.span,
                hint="WITH (SNAPSHOT), or run it on a federation",
                code="needs_federation",
            )
        result = self._select(bound)
        if key:
            _check_unique(result, bound.schema, key)
        if statement.progress:
            result = replace(result, message=f"complete up to {timestamp_text(self.history.now)}")
        return result

    def _refresh(self, statement: Refresh) -> Result:
        view = refreshed(statement, self.catalog)
        if statement.is_table:
            return Result(message=f"table {view.name} has what INSERT wrote: nothing is read")
        rows = self._standing.refresh(view)
        return Result(message=f"view {view.name} refreshed, rows: {rows}")

    def _changed(self, result: Result) -> Result:
        self._standing.update()
        return result

    def _answer(self, bound: BoundQuery) -> Delta:
        """Return the relation of a query at the end of the history.

        Raises:
            FederationError: It reads a system source, or the engine refuses it.
        """
        for node in walk_plan(bound.plan):
            if isinstance(node, Scan) and system_source(node.source) is not None:
                raise UnsupportedError(
                    f"{node.source} describes running queries and their sites; a local session "
                    "runs one query after another and keeps none running",
                    hint="run it in a federation: pando shell, or pando query run",
                    code="needs_federation",
                )
        return self._executor.answer(bound, self.history, self.catalog)

    def _show(self, statement: Show) -> Result:
        if statement.kind in ("queries", "gateways", "network"):
            what = "network of queries" if statement.kind == "network" else statement.kind
            raise UnsupportedError(
                f"a local session has no {what}",
                span=statement.span,
                hint=_LISTINGS,
                code="needs_federation",
            )
        standing = self._standing
        return _rows(
            show(
                statement.kind,
                self.catalog,
                (),
                (),
                standing.alarms(),
                refreshes=standing.refreshes,
            )
        )

    def _describe(self, statement: Describe) -> Result:
        definition = self.catalog.find(statement.name.text)
        if definition is None:
            raise BindingError(
                f"there is nothing with the name {statement.name.text!r}",
                span=statement.name.span,
                hint=_LISTINGS,
                code="unknown_relation",
            )
        return _rows(describe_definition(definition, self.catalog, self._standing.refreshes))

    def _drop(self, statement: Drop) -> Result:
        if statement.kind == "query":
            raise UnsupportedError(
                "a local session has no continuous queries",
                span=statement.span,
                hint="pando shell, or pando run FILE, uses the running federation",
                code="needs_federation",
            )
        found = dropped_definition(statement, self.catalog)
        if found is None:
            return Result(message=f"there was no {statement.kind} {statement.name.text}")
        alarms = (Reader("alarm", a.name, a.query) for a in self.catalog.alarms)
        refuse_used(statement, found, users_of(found, self.catalog, alarms))
        self.catalog.drop(found.name)
        self._standing.discard(found.name)
        self._samplers.pop(found.name, None)
        self.history.discard(found.name)
        return Result(message=f"{kind_of(found)} {found.name} dropped")

    def _change(self, statement: Insert | Delete | Update | Merge | Refresh) -> Result:
        match statement:
            case Insert():
                return self._insert(statement)
            case Delete():
                return self._delete(statement)
            case Refresh():
                return self._refresh(statement)
            case Update() | Merge():
                count = changed_table(statement, self.catalog, self.history)
                return Result(message=f"{count} changed")

    def _insert(self, statement: Insert) -> Result:
        bound = bind_insert(statement, self.catalog)
        definition, rows = bound.definition, inserted_rows(bound, statement, self.history)
        arrived = [SourceEvent(row, self._event_time(definition, row)) for row in rows]
        sampler = self._samplers.setdefault(definition.name, sampler_of(definition))
        events = tuple(event for event in arrived if sampler is None or sampler.keeps(event))
        self.history.record(definition.name, events)
        omitted = len(arrived) - len(events)
        note = f", {omitted} omitted by sample" if omitted else ""
        return Result(message=f"{len(events)} inserted{note}")

    def _event_time(self, definition: SourceDefinition, row: Row) -> int:
        if definition.time_column is None:
            return self.history.now
        value: Value = row[definition.time_column]
        return value if isinstance(value, int) else self.history.now

    def _delete(self, statement: Delete) -> Result:
        bound = bind_delete(statement, self.catalog)
        definition = bound.definition
        chosen = compile_predicate(bound.predicate) if bound.predicate is not None else None
        rows = contents(definition.scan(), self.history.database, self.history.now)
        events = tuple(
            SourceEvent(row, ts, delete=True) for ts, row in rows if chosen is None or chosen(row)
        )
        self.history.record(definition.name, events)
        return Result(message=f"{len(events)} deleted")


def _rows(listing: StatementResult) -> Result:
    """Return a listing as typed rows; a column has the type of its first value."""
    first = listing.rows[0] if listing.rows else ("",) * len(listing.columns)
    types = [DataType.BOOLEAN if isinstance(v, bool) else DataType.TEXT for v in first]
    schema = Schema.of(*zip(listing.columns, types, strict=True))
    return Result(schema=schema, rows=listing.rows)


def _check_unique(result: Result, schema: Schema, key: tuple[int, ...]) -> None:
    """Check that an answer has one row per key.

    Raises:
        FederationError: It has more.
    """
    envelope = UpsertEnvelope(schema, key)
    envelope.take([Change(0, 1, row) for row in result.rows], snapshot=True)
    envelope.check()


def _stored_rows(definition: Definition) -> list[Row]:
    """Return the rows of a table's file or database; none for anything else.

    Relative paths start from the working directory.

    Raises:
        DeploymentError: It cannot be read, or its columns are others.
    """
    if not isinstance(definition, SourceDefinition) or not definition.is_table:
        return []
    if definition.option("source") in (None, TableSource.LAKE):
        return []  # a script has no lake: such a table is empty at its start
    # Imported here because it loads Arrow, which most scripts do not need.
    from static_engine.sources.table_locations import Locations  # noqa: PLC0415
    from static_engine.sources.table_reader import read_table  # noqa: PLC0415

    rows: list[Row] = []
    for batch in read_table(definition, Locations(Path.cwd(), opened=(Path("/"),))):
        rows.extend(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    return rows
