"""Non-linear and mutual recursion mean what the same rules mean in Datalog.

Programs are drawn at random: rules over `link` and up to three relations that may read themselves
and each other, any number of times. They are written as one WITH RECURSIVE, bound, and evaluated;
a few lines of Python find the same least model rule by rule.
"""

import itertools
from dataclasses import dataclass

from hypothesis import assume, given
from hypothesis import strategies as st

from streamsql.algebra.operators import Fixpoint, Plan, RecursiveReference, walk_plan
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.reference import Database, evaluate
from tests.streamsql.from_text import bound_query, catalog_of

ARITY = {"link": 2, "a": 2, "b": 1, "c": 2}
COLUMNS = {"link": ("src", "dst"), "a": ("p", "q"), "b": ("r",), "c": ("s", "t")}
VARIABLES = "xyz"
Atom = tuple[str, tuple[str, ...]]
Model = dict[str, set[Row]]


@dataclass(frozen=True)
class Rule:
    """`head(variables) :- body`."""

    head: Atom
    body: tuple[Atom, ...]


@st.composite
def atoms(draw: st.DrawFn, relations: list[str]) -> Atom:
    name = draw(st.sampled_from(relations))
    return name, tuple(draw(st.sampled_from(VARIABLES)) for _ in range(ARITY[name]))


@st.composite
def rules(draw: st.DrawFn, head: str, readable: list[str]) -> Rule:
    body = draw(st.lists(atoms(readable), min_size=1, max_size=3))
    bound = sorted({variable for _, variables in body for variable in variables})
    variables = tuple(draw(st.sampled_from(bound)) for _ in range(ARITY[head]))
    return Rule((head, variables), tuple(body))


@st.composite
def programs(draw: st.DrawFn) -> tuple[Rule, ...]:
    names = draw(st.permutations(["a", "b", "c"]))[: draw(st.integers(1, 3))]
    found: list[Rule] = []
    for name in names:
        found += draw(st.lists(rules(name, ["link"]), max_size=1))
        found += draw(st.lists(rules(name, ["link", *names, *names]), min_size=1, max_size=2))
    return tuple(found)


links = st.lists(st.tuples(st.sampled_from("123"), st.sampled_from("123")), max_size=6, unique=True)


def least_model(program: tuple[Rule, ...], link: list[tuple[str, str]]) -> Model:
    model: Model = {name: set() for name in ARITY}
    model["link"] = set(link)
    while True:
        derived: Model = {name: set(rows) for name, rows in model.items()}
        for rule in program:
            (name, variables) = rule.head
            for rows in itertools.product(*(model[atom] for atom, _ in rule.body)):
                pairs = [
                    pair
                    for (_, names), row in zip(rule.body, rows, strict=True)
                    for pair in zip(names, row, strict=True)
                ]
                meaning = dict(pairs)
                if all(meaning[variable] == value for variable, value in pairs):
                    derived[name].add(tuple(meaning[variable] for variable in variables))
        if derived == model:
            return model
        model = derived


def select(rule: Rule) -> str:
    places: dict[str, list[str]] = {}
    for number, (name, variables) in enumerate(rule.body):
        for column, variable in zip(COLUMNS[name], variables, strict=True):
            places.setdefault(variable, []).append(f"t{number}.{column}")
    items = ", ".join(places[variable][0] for variable in rule.head[1])
    tables = ", ".join(f"{name} t{number}" for number, (name, _) in enumerate(rule.body))
    equal = [f"{first} = {p}" for first, *rest in places.values() for p in rest]
    return f"SELECT {items} FROM {tables}" + (f" WHERE {' AND '.join(equal)}" if equal else "")


def text_of(program: tuple[Rule, ...], asked: str) -> str:
    by_head: dict[str, list[str]] = {}
    for rule in program:
        by_head.setdefault(rule.head[0], []).append(select(rule))
    tables = ", ".join(
        f"{name}({', '.join(COLUMNS[name])}) AS ({' UNION '.join(selects)})"
        for name, selects in by_head.items()
    )
    return f"WITH RECURSIVE {tables} SELECT DISTINCT * FROM {asked}"


def bound(text: str) -> Plan:
    return bound_query(text, catalog_of("CREATE LINK SOURCE link (src TEXT, dst TEXT)")).plan


def has_base(program: tuple[Rule, ...]) -> bool:
    """Whether every relation can be reached from one that is defined without recursion."""
    heads = {rule.head[0] for rule in program}
    grounded: set[str] = set()
    for _ in heads:
        for rule in program:
            if all(name in grounded | {"link"} for name, _ in rule.body):
                grounded.add(rule.head[0])
    return grounded == heads


@given(programs(), links)
def test_least_model(program: tuple[Rule, ...], link: list[tuple[str, str]]) -> None:
    assume(has_base(program))
    model = least_model(program, link)
    database = Database()
    database.append("link", [SourceEvent(row, ts=0) for row in link])
    for name in {rule.head[0] for rule in program}:
        relation = evaluate(bound(text_of(program, name)), database, 0)
        assert set(relation) == model[name]
        assert set(relation.values()) <= {1}


def fixpoints(text: str) -> set[Fixpoint]:
    return {node for node in walk_plan(bound(text)) if isinstance(node, Fixpoint)}


MUTUAL = """WITH RECURSIVE near(n, hops) AS (
  SELECT dst, 1 FROM link WHERE src = '1' UNION SELECT l.dst, f.steps + 1
  FROM far f JOIN link l ON l.src = f.n WHERE f.steps < 5),
far(n, tag, steps) AS (SELECT l.dst, 'far', h.hops FROM near h JOIN link l ON l.src = h.n)
SELECT near.n, far.tag FROM near JOIN far ON near.n = far.n"""


def test_one_tagged_relation() -> None:
    (fixpoint,) = fixpoints(MUTUAL)
    assert fixpoint.name == "near+far"
    assert str(fixpoint.schema) == (
        "(relation TEXT, n TEXT, hops INTEGER, tag TEXT, steps INTEGER)"
    )
    assert len(fixpoint.base) == 1
    assert len(fixpoint.step) == 2
    for branch in fixpoint.step:
        (reference,) = [n for n in walk_plan(branch) if isinstance(n, RecursiveReference)]
        assert reference == RecursiveReference(fixpoint.name, fixpoint.schema)


def test_columns_are_shared_where_types_agree() -> None:
    (fixpoint,) = fixpoints(
        "WITH RECURSIVE even(n) AS (SELECT 0 UNION SELECT odd.m + 1 FROM odd WHERE odd.m < 9), "
        "odd(m) AS (SELECT n + 1 FROM even) SELECT * FROM even"
    )
    assert str(fixpoint.schema) == "(relation TEXT, n INTEGER)"


def test_types_widen_through_each_other() -> None:
    plan = bound(
        "WITH RECURSIVE even(n) AS (SELECT 0 UNION SELECT odd.n + 0.5 FROM odd WHERE odd.n < 3), "
        "odd(n) AS (SELECT n + 1 FROM even) SELECT * FROM even UNION ALL SELECT * FROM odd"
    )
    assert evaluate(plan, Database(), 0) == {
        (0.0,): 1, (1.0,): 1, (1.5,): 1, (2.5,): 1, (3.0,): 1, (4.0,): 1
    }  # fmt: skip


def test_definitions_may_stand_after_their_use() -> None:
    assert not fixpoints("WITH RECURSIVE a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a")
    (only,) = fixpoints(
        "WITH RECURSIVE a AS (SELECT * FROM b), b(n) AS (SELECT src FROM link UNION "
        "SELECT l.dst FROM b JOIN link l ON l.src = b.n) SELECT * FROM a"
    )
    assert only.name == "b"


def test_an_inner_with_gives_names_its_own_meaning() -> None:
    assert not fixpoints(
        "WITH RECURSIVE a AS (WITH b AS (SELECT 1 AS x) SELECT x FROM b), "
        "b AS (SELECT x FROM a) SELECT * FROM b"
    )
    text = (
        "WITH RECURSIVE a(x) AS (SELECT 'b' UNION "
        "SELECT q.x FROM (WITH a AS (SELECT UPPER(x) AS x FROM a) SELECT * FROM a) q) "
        "SELECT * FROM a"
    )
    assert len(fixpoints(text)) == 1
    assert set(evaluate(bound(text), Database(), 0)) == {("b",), ("B",)}
