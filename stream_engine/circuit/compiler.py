"""From plans to circuits: the table of operators.

Each operator is imported where a plan has it: a gateway that filters readings loads neither joins
nor sessions.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from stream_engine.circuit.circuit import Circuit
from stream_engine.circuit.closing_node import ClosingNode
from stream_engine.circuit.nodes import FixpointNode, Node, OperatorNode, RemoteNode, SourceNode
from stream_engine.operators.rows.operator import Operator, RecursiveOperator, TimedOperator
from stream_engine.operators.rows.scan import ScanOperator
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
    WindowBounds,
    WindowKind,
    Younger,
    walk_plan,
)
from streamsql.errors import InternalError

if TYPE_CHECKING:
    from stream_engine.circuit.copies import CopiesOperator
    from stream_engine.operators.sessions.session_cells import SessionGroups

FixpointFactory = Callable[[Fixpoint], RecursiveOperator]


def compile_plan(
    plan: Plan, make_fixpoint: FixpointFactory, *, multiway_joins: bool = True
) -> Circuit:
    """Return a new circuit for a closed plan; equal subplans become one node.

    Args:
        plan: Any closed plan.
        make_fixpoint: Builds the operator of a recursion; it knows the site and its peers.
        multiway_joins: Whether trees of inner joins run as one operator, without the intermediate
            results that no other operator reads; the answer is the same.

    Raises:
        InternalError: The plan reads a recursive relation outside its recursion.
    """
    compiler = _Compiler(make_fixpoint, plan, multiway_joins=multiway_joins)
    output = compiler.node_for(plan)
    return Circuit(compiler.nodes, output)


class _Compiler:
    """Nodes made so far, inputs before consumers, and which subplan each computes."""

    def __init__(
        self,
        make_fixpoint: FixpointFactory,
        plan: Plan,
        *,
        multiway_joins: bool,
        instant_by_instant: bool = False,
    ) -> None:
        self.nodes: list[Node] = []
        self._instant_by_instant = instant_by_instant
        self._multiway_joins = multiway_joins
        self._shared = _shared_plans(plan) if multiway_joins else None
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
            case Window() | WindowBounds():
                return (SourceNode(plan, plan.input, source_operator(plan)), ())
            case RemoteSource(fragment=name, columns=columns):
                # Most gateways read no other site, and load nothing that knows names of ports.
                from stream_engine.state.sited_ports import port_of

                return (RemoteNode(RemoteSource(port_of(name), columns), name), ())
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
                from stream_engine.circuit.relation_streams import ChangesNode, ChangesOperator

                return (ChangesNode(plan, ChangesOperator(plan.kind)), (query,))
            case ToStream():
                return (self._instants(plan), plan.inputs)
            case StreamWindow(time=time):
                from stream_engine.circuit.relation_streams import StreamWindowNode
                from stream_engine.operators.windows.time_window import StreamWindowOperator

                window = StreamWindowOperator(time, window_operator(plan))
                return (StreamWindowNode(plan, window), plan.inputs)
            case Younger():
                return self._younger(plan)
            case Join() | Filter() | Project() if (found := self._multiway(plan)) is not None:
                return found
            case Aggregate() if (grouped := _session_groups(plan)) is not None:
                from stream_engine.circuit.session_grouping import wiring_of
                from stream_engine.operators.sessions.session_groups import SessionGroupsOperator

                spec, sessions = grouped
                node = OperatorNode(plan, SessionGroupsOperator(spec))
                node.wiring = wiring_of(plan, sessions)
                return (node, sessions.inputs)
            case _:
                return (OperatorNode(plan, plain_operator(plan)), plan.inputs)

    @staticmethod
    def _younger(plan: Younger) -> tuple[Node, tuple[Plan, ...]]:
        """Return the node of younger rows; what it reads comes with the sites that have sent it."""
        from stream_engine.operators.windows.younger import YoungerOperator
        from stream_engine.state.sited_ports import sited_plan

        return OperatorNode(plan, YoungerOperator(plan)), tuple(map(sited_plan, plan.inputs))

    def _multiway(self, plan: Plan) -> tuple[Node, tuple[Plan, ...]] | None:
        """Return one node for a tree of inner joins and the plans it reads, or None."""
        if self._shared is None:
            return None
        from stream_engine.circuit.join_nodes import MultiwayWiring, multiway
        from stream_engine.operators.joins.multi_join import MultiJoinOperator

        found = multiway(plan, self._shared)
        if found is None:
            return None
        join, inputs = found
        node = OperatorNode(plan, MultiJoinOperator(join))
        node.wiring = MultiwayWiring(plan, ways=len(inputs))
        return node, inputs

    def _copies(self, plan: Fixpoint) -> "CopiesOperator":
        """Return a recursion that counts copies, with a circuit for its branches inside."""
        from stream_engine.circuit.copies import CopiesOperator, branches_of

        branches, leaves = branches_of(plan)
        inner = _Compiler(self._make_fixpoint, branches, multiway_joins=self._multiway_joins)
        output = inner.node_for(branches)
        return CopiesOperator(plan, Circuit(inner.nodes, output), leaves)

    def _instants(self, plan: ToStream) -> Node:
        """Return the node of a stream, with a circuit for its query inside."""
        from stream_engine.circuit.relation_streams import InstantsOperator

        inner = _Compiler(
            self._make_fixpoint,
            plan.query,
            multiway_joins=self._multiway_joins,
            instant_by_instant=True,
        )
        output = inner.node_for(plan.query)
        return ClosingNode(plan, InstantsOperator(plan, Circuit(inner.nodes, output)))

    def _on_close(self, plan: OnClose, groups: Aggregate) -> tuple[Node, tuple[Plan, ...]]:
        """Return the node of groups that close, and its inputs.

        Groups that are not kept by session report to the sessions below what has closed.
        """
        from stream_engine.operators.windows.on_close import OnCloseOperator

        grouped = _session_groups(groups)
        if grouped is not None:
            from stream_engine.circuit.session_grouping import wiring_of
            from stream_engine.operators.sessions.session_groups import SessionGroupsOperator

            spec, window = grouped
            if spec.output[plan.end] == len(spec.inner) + len(spec.partition) + 1:
                node = ClosingNode(plan, OnCloseOperator(plan, None, SessionGroupsOperator(spec)))
                node.wiring = wiring_of(plan, window)
                return node, (window.input, plan.right)
        child = groups.input
        forget: Callable[[int], None] | None = None
        below = _sessions_below(child)
        if below is not None:
            from stream_engine.operators.sessions.session_window import SessionWindowOperator

            sessions = self.nodes[self.node_for(below)]
            if isinstance(sessions, OperatorNode):
                window_operator = sessions.operator
                if isinstance(window_operator, SessionWindowOperator):
                    window_operator.keep_ends()
                    forget = window_operator.forget
        return ClosingNode(plan, OnCloseOperator(plan, forget)), (child, plan.right)


def _shared_plans(plan: Plan) -> frozenset[Plan] | None:
    """Return the subplans that must be computed by themselves; None where nothing is joined."""
    if not any(isinstance(below, Join) for below in walk_plan(plan)):
        return None
    from stream_engine.circuit.join_nodes import shared_plans

    return shared_plans(plan)


def _session_groups(plan: Aggregate) -> "tuple[SessionGroups, SessionWindow] | None":
    """Return the groups of a session window as one step, or None where there is no such step."""
    if _sessions_below(plan.input) is None:
        return None
    from stream_engine.circuit.session_grouping import session_groups

    return session_groups(plan)


def _sessions_below(plan: Plan) -> SessionWindow | None:
    """Return the sessions whose rows a plan passes on one by one, or None."""
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
            from stream_engine.operators.rows.linear_operators import ValuesOperator

            return ValuesOperator(rows)
        case Filter(predicate=predicate):
            from stream_engine.operators.rows.linear_operators import FilterOperator

            return FilterOperator(predicate)
        case Project(input=child, expressions=expressions):
            from stream_engine.operators.rows.linear_operators import ProjectOperator

            return ProjectOperator(expressions, len(child.schema))
        case Join() | AsOfJoin():
            from stream_engine.circuit.join_nodes import join_operator

            return join_operator(plan)
        case Aggregate(group=group, aggregates=aggregates):
            from stream_engine.operators.aggregates.aggregate import AggregateOperator

            return AggregateOperator(group, aggregates)
        case Distinct():
            from stream_engine.operators.rows.set_operators import DistinctOperator

            return DistinctOperator()
        case UnionAll() | Materialize():
            from stream_engine.operators.rows.linear_operators import UnionAllOperator

            return UnionAllOperator()  # of one input: its changes as they are
        case TopN() | OverWindow() | HopWindow() | SessionWindow() | SetOperation():
            return _ordered_or_set_operator(plan)


def _ordered_or_set_operator(
    plan: TopN | OverWindow | HopWindow | SessionWindow | SetOperation,
) -> Operator:
    """Return the operator of an order, of windows over any relation, or of a set operation."""
    match plan:
        case TopN():
            from stream_engine.operators.rows.top_n import TopNOperator

            return TopNOperator(plan)
        case OverWindow():
            from stream_engine.operators.windows.over_window import OverWindowOperator

            return OverWindowOperator(plan)
        case HopWindow():
            from stream_engine.operators.windows.tumble_hop_window import HopWindowOperator

            return HopWindowOperator(plan)
        case SessionWindow():
            from stream_engine.operators.sessions.session_window import SessionWindowOperator

            return SessionWindowOperator(plan)
        case SetOperation():
            from stream_engine.operators.rows.set_operators import SetOperationOperator

            return SetOperationOperator(plan)


def source_operator(plan: Window | WindowBounds) -> TimedOperator:
    """Return the operator of a window over a source, or of its bounds."""
    if isinstance(plan, Window):
        return window_operator(plan)
    from stream_engine.operators.windows.window_bounds import WindowBoundsOperator

    return WindowBoundsOperator(plan)


def window_operator(window: Window | StreamWindow) -> TimedOperator:
    """Return the operator of a window."""
    scan, size = window.input, window.size or 0
    match window.kind:
        case WindowKind.UNBOUNDED:
            return ScanOperator()
        case WindowKind.NOW:
            from stream_engine.operators.windows.time_window import SteppedWindow, current_second

            return SteppedWindow(current_second)
        case WindowKind.RANGE:
            from stream_engine.operators.windows.time_window import (
                RangeWindow,
                SteppedWindow,
                sliding,
            )

            slide = window.slide
            return SteppedWindow(sliding(size, slide)) if slide else RangeWindow(size)
        case WindowKind.ROWS:
            from stream_engine.operators.windows.rows_window import RowsWindow

            is_log = not isinstance(scan, Scan) or (
                scan.kind == SourceKind.STREAM and not scan.key and scan.ttl is None
            )
            return RowsWindow(size, window.partition, bounded=is_log, within=window.range)
