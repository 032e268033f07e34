"""From plans to circuits."""

from collections.abc import Callable

from stream_engine.circuit.circuit import Circuit
from stream_engine.circuit.closing import ClosingNode
from stream_engine.circuit.copies import CopiesOperator, branches_of
from stream_engine.circuit.instants import ChangesOperator, InstantsOperator
from stream_engine.circuit.joins import join_operator
from stream_engine.circuit.multiway import MultiwayWiring, multiway, shared_plans
from stream_engine.circuit.nodes import FixpointNode, Node, OperatorNode, RemoteNode, SourceNode
from stream_engine.circuit.session_groups import session_groups, wiring_of
from stream_engine.circuit.stream_nodes import ChangesNode, InstantsNode, StreamWindowNode
from stream_engine.operators.aggregates.aggregate import AggregateOperator
from stream_engine.operators.joins.multi_join import MultiJoinOperator
from stream_engine.operators.rows.constant_values import ValuesOperator
from stream_engine.operators.rows.distinct import DistinctOperator
from stream_engine.operators.rows.filter import FilterOperator
from stream_engine.operators.rows.operator import Operator, RecursiveOperator, TimedOperator
from stream_engine.operators.rows.project import ProjectOperator
from stream_engine.operators.rows.scan import ScanOperator
from stream_engine.operators.rows.set_operation import SetOperationOperator
from stream_engine.operators.rows.top_n import TopNOperator
from stream_engine.operators.rows.union_all import UnionAllOperator
from stream_engine.operators.sessions.session_groups import SessionGroupsOperator
from stream_engine.operators.sessions.session_window import SessionWindowOperator
from stream_engine.operators.windows.on_close import OnCloseOperator
from stream_engine.operators.windows.over_window import OverWindowOperator
from stream_engine.operators.windows.rows_window import RowsWindow
from stream_engine.operators.windows.stream_window import StreamWindowOperator
from stream_engine.operators.windows.time_window import (
    RangeWindow,
    SteppedWindow,
    current_second,
    sliding,
)
from stream_engine.operators.windows.tumble_hop_window import HopWindowOperator
from streamsql.algebra.choices import Copies
from streamsql.algebra.operators import (
    Aggregate,
    AsOfJoin,
    Distinct,
    Filter,
    Fixpoint,
    HopWindow,
    Join,
    Materialize,
    OnClose,
    OverWindow,
    Plan,
    Project,
    RecursiveReference,
    RemoteSource,
    Scan,
    SessionWindow,
    SetOperation,
    SourceKind,
    StreamWindow,
    TopN,
    ToStream,
    UnionAll,
    Values,
    Window,
    WindowKind,
)
from streamsql.errors import InternalError

FixpointFactory = Callable[[Fixpoint], RecursiveOperator]


def compile_plan(
    plan: Plan, make_fixpoint: FixpointFactory, *, multiway_joins: bool = True
) -> Circuit:
    """Return a new circuit for a plan; equal subplans become one node.

    Args:
        plan: Any closed plan.
        make_fixpoint: Builds the operator of a recursion; it knows the site and its peers.
        multiway_joins: Whether trees of inner joins run as one operator, without intermediate
            results, where nothing else needs these; the answer is the same.

    Raises:
        InternalError: The plan reads a recursive relation outside its recursion.
    """
    shared = shared_plans(plan) if multiway_joins else None
    compiler = _Compiler(make_fixpoint, shared)
    output = compiler.node_for(plan)
    return Circuit(compiler.nodes, output)


class _Compiler:
    """Nodes made so far, inputs before consumers, and which subplan each computes."""

    def __init__(
        self,
        make_fixpoint: FixpointFactory,
        shared: frozenset[Plan] | None,
        *,
        instant_by_instant: bool = False,
    ) -> None:
        self.nodes: list[Node] = []
        self._instant_by_instant = instant_by_instant
        self._shared = shared
        self._make_fixpoint = make_fixpoint
        self._numbers: dict[Plan, int] = {}

    def node_for(self, plan: Plan) -> int:
        """Return the number of the node that computes a subplan, after making it if needed."""
        known = self._numbers.get(plan)
        if known is not None:
            return known
        node, inputs = self._make(plan)
        producers = [self.node_for(child) for child in inputs]
        number = len(self.nodes)
        self.nodes.append(node)
        for port, producer in enumerate(producers):
            self.nodes[producer].wiring.consumers.append((number, port))
        self._numbers[plan] = number
        return number

    def _make(self, plan: Plan) -> tuple[Node, tuple[Plan, ...]]:
        """Return the node of an operator, not yet wired, and the plans it reads."""
        match plan:
            case Scan():
                return (SourceNode(plan, plan, ScanOperator()), ())
            case Window():
                return (SourceNode(plan, plan.input, window_operator(plan)), ())
            case RemoteSource():
                return (RemoteNode(plan), ())
            case Fixpoint() if plan.copies != Copies.ONE:
                copies = self._copies(plan)
                return (FixpointNode(plan, copies), copies.leaves)
            case Fixpoint():
                recursion = self._make_fixpoint(plan)
                return (FixpointNode(plan, recursion), recursion.leaves)
            case RecursiveReference(name=name):
                raise InternalError(f"recursive relation {name} is read outside its recursion")
            case OnClose(left=Aggregate() as groups):
                return self._on_close(plan, groups)
            case OnClose():
                raise InternalError("windows close over an aggregate")
            case ToStream(query=query) if self._instant_by_instant:
                return (ChangesNode(plan, ChangesOperator(plan.kind)), (query,))
            case ToStream():
                return (self._instants(plan), plan.inputs)
            case StreamWindow(time=time):
                window = StreamWindowOperator(time, window_operator(plan))
                return (StreamWindowNode(plan, window), plan.inputs)
            case Join() | Filter() | Project() if (found := self._multiway(plan)) is not None:
                return found
            case Aggregate() if (grouped := session_groups(plan)) is not None:
                spec, sessions = grouped
                node = OperatorNode(plan, SessionGroupsOperator(spec))
                node.wiring = wiring_of(plan, sessions)
                return (node, sessions.inputs)
            case _:
                return (OperatorNode(plan, plain_operator(plan)), plan.inputs)

    def _multiway(self, plan: Plan) -> tuple[Node, tuple[Plan, ...]] | None:
        """Return one node for a tree of inner joins and the plans it reads, or None."""
        found = None if self._shared is None else multiway(plan, self._shared)
        if found is None:
            return None
        join, inputs = found
        node = OperatorNode(plan, MultiJoinOperator(join))
        node.wiring = MultiwayWiring(plan, ways=len(inputs))
        return node, inputs

    def _copies(self, plan: Fixpoint) -> CopiesOperator:
        """Return a recursion that counts copies, with a circuit for its branches inside."""
        branches, leaves = branches_of(plan)
        shared = None if self._shared is None else shared_plans(branches)
        inner = _Compiler(self._make_fixpoint, shared)
        output = inner.node_for(branches)
        return CopiesOperator(plan, Circuit(inner.nodes, output), leaves)

    def _instants(self, plan: ToStream) -> Node:
        """Return the node of a stream, with a circuit for its query inside."""
        inner = _Compiler(
            self._make_fixpoint,
            None if self._shared is None else shared_plans(plan.query),
            instant_by_instant=True,
        )
        output = inner.node_for(plan.query)
        return InstantsNode(plan, InstantsOperator(plan, Circuit(inner.nodes, output)))

    def _on_close(self, plan: OnClose, groups: Aggregate) -> tuple[Node, tuple[Plan, ...]]:
        """Return the node of groups that close, and its inputs.

        Groups that are not kept by session tell the sessions below what has closed.
        """
        grouped = session_groups(groups)
        if grouped is not None:
            spec, window = grouped
            if spec.output[plan.end] == len(spec.inner) + len(spec.partition) + 1:
                node = ClosingNode(plan, OnCloseOperator(plan, None, SessionGroupsOperator(spec)))
                node.wiring = wiring_of(plan, window)
                return node, (window.input, plan.right)
        child = groups.input
        forget: Callable[[int], None] | None = None
        below = _sessions_below(child)
        if below is not None:
            sessions = self.nodes[self.node_for(below)]
            if isinstance(sessions, OperatorNode):
                window_operator = sessions.operator
                if isinstance(window_operator, SessionWindowOperator):
                    window_operator.keep_ends()
                    forget = window_operator.forget
        return ClosingNode(plan, OnCloseOperator(plan, forget)), (child, plan.right)


def _sessions_below(plan: Plan) -> SessionWindow | None:
    """Return the sessions whose rows a plan passes on one by one, if there are any."""
    match plan:
        case SessionWindow():
            return plan
        case Filter(input=child) | Project(input=child) | Join(left=child):
            return _sessions_below(child)
        case _:
            return None


PlainPlan = (
    Values
    | Filter
    | Project
    | Materialize
    | Join
    | AsOfJoin
    | Aggregate
    | Distinct
    | UnionAll
    | TopN
    | OverWindow
    | HopWindow
    | SessionWindow
    | SetOperation
)
"""What reads plain rows, and nothing but its inputs."""


def plain_operator(plan: PlainPlan) -> Operator:
    """Return the operator of a plan node that reads plain rows."""
    match plan:
        case Values(rows=rows):
            return ValuesOperator(rows)
        case Filter(predicate=predicate):
            return FilterOperator(predicate)
        case Project(input=child, expressions=expressions):
            return ProjectOperator(expressions, len(child.schema))
        case Join() | AsOfJoin():
            return join_operator(plan)
        case Aggregate(group=group, aggregates=aggregates):
            return AggregateOperator(group, aggregates)
        case Distinct():
            return DistinctOperator()
        case UnionAll() | Materialize():
            return UnionAllOperator()  # of one input: its changes as they are
        case TopN() | OverWindow() | HopWindow() | SessionWindow() | SetOperation():
            return _ordered_or_set_operator(plan)


def _ordered_or_set_operator(
    plan: TopN | OverWindow | HopWindow | SessionWindow | SetOperation,
) -> Operator:
    """Return the operator of an order, of windows over any relation, or of a set operation."""
    match plan:
        case TopN():
            return TopNOperator(plan)
        case OverWindow():
            return OverWindowOperator(plan)
        case HopWindow():
            return HopWindowOperator(plan)
        case SessionWindow():
            return SessionWindowOperator(plan)
        case SetOperation():
            return SetOperationOperator(plan)


def window_operator(window: Window | StreamWindow) -> TimedOperator:
    """Return the operator of a window."""
    scan, size = window.input, window.size or 0
    match window.kind:
        case WindowKind.UNBOUNDED:
            return ScanOperator()
        case WindowKind.NOW:
            return SteppedWindow(current_second)
        case WindowKind.RANGE:
            slide = window.slide
            return SteppedWindow(sliding(size, slide)) if slide else RangeWindow(size)
        case WindowKind.ROWS:
            is_log = not isinstance(scan, Scan) or (
                scan.kind == SourceKind.STREAM and not scan.key and scan.ttl is None
            )
            return RowsWindow(size, window.partition, bounded=is_log, within=window.range)
