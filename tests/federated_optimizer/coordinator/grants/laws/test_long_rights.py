"""Random scripts of grants, views, queries and changed accounts against a model of who may read.

The model knows nothing of catalogs, binders or coordinators: relations, who made a view and what it
reads, grants as a set of triples, and one recursive question.
"""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from federated_optimizer.coordinator.contract.people_model import Account
from federated_optimizer.coordinator.contract.principal import Principal, Role
from streamsql.errors import FederationError
from tests.federated_optimizer.coordinator.conftest import Federation

RANK = {"viewer": 0, "analyst": 1, "operator": 2, "administrator": 3}
BASE = {"temperature": "SOURCE", "roomsensor": "SOURCE", "link": "SOURCE", "machines": "TABLE"}
LIBRARY = {"reachable": ("link",)}
PEOPLE = ("ann", "ben", "eva")
VIEWS = ("v1", "v2", "v3")
READABLE = (*BASE, *LIBRARY, *VIEWS)
ADA = Principal("ada", Role.ADMINISTRATOR)


@dataclass
class View:
    maker: str | None
    reads: tuple[str, ...]


@dataclass
class Running:
    maker: str | None
    reads: tuple[str, ...]
    stopped: bool = False


@dataclass
class Model:
    """All that decides who may read what."""

    roles: dict[str, str] = field(default_factory=lambda: dict.fromkeys(PEOPLE, "analyst"))
    grants: set[tuple[str, str, str]] = field(default_factory=set)
    views: dict[str, View] = field(default_factory=dict)
    queries: dict[str, Running] = field(default_factory=dict)

    def named(self, who: str, relation: str) -> bool:
        """Whether somebody may name a relation."""
        rank = RANK[self.roles[who]]
        if rank >= 2 or relation in LIBRARY:
            return True
        if relation in self.views and self.views[relation].maker == who:
            return True
        roles = [role for role, other in RANK.items() if other <= rank]
        wanted = {(relation, "user", who), (relation, "everybody", "")}
        wanted |= {(relation, "role", role) for role in roles}
        return bool(wanted & self.grants)

    def may(self, who: str | None, relation: str) -> bool:
        """Whether somebody may read a relation with all that is below it."""
        if who is None or who not in self.roles or not self.named(who, relation):
            return False
        if relation in LIBRARY:
            return all(self.may(who, below) for below in LIBRARY[relation])
        if relation in self.views:
            view = self.views[relation]
            return all(self.may(view.maker, below) for below in view.reads)
        return True

    def may_all(self, who: str | None, relations: tuple[str, ...]) -> bool:
        return who in self.roles and all(self.may(who, relation) for relation in relations)

    def settle(self) -> None:
        for query in self.queries.values():
            query.stopped = query.stopped or not self.may_all(query.maker, query.reads)


def query_text(form: int, relations: tuple[str, ...]) -> str:
    """Return a query that reads exactly these relations."""
    first, *rest = relations
    union = " UNION ".join(f"SELECT 1 AS n FROM {name}" for name in relations)
    if form == 1:
        return f"SELECT n FROM ({union}) AS inner_one"
    if form == 2:
        return f"WITH part AS ({union}) SELECT n FROM part"
    if form == 3 and rest:
        # The name of a relation, though nobody reads it: a common table hides it.
        hidden = f"WITH {rest[0]} AS (SELECT 1 AS n FROM {rest[0]}) SELECT n FROM {rest[0]}"
        others = " UNION ".join(f"SELECT 1 AS n FROM {n}" for n in (first, *rest[1:]))
        return f"SELECT n FROM ({hidden}) AS one UNION {others}"
    return union


class Script:
    """One random script, on a coordinator and on the model."""

    def __init__(self, coordinator: Any) -> None:
        self.whole = coordinator
        self.model = Model()
        self.created = dict.fromkeys(PEOPLE, 0)
        coordinator.follow_accounts(self.account)

    def account(self, name: str) -> Account | None:
        role = self.model.roles.get(name)
        return None if role is None else Account(name, Role(role), created=self.created[name])

    async def run(self, who: Principal, text: str) -> Any:
        """Return the result of a statement, or None where it is not allowed."""
        try:
            (result,) = await self.whole.on_behalf(who).execute(text)
        except FederationError as error:
            if error.code != "not_allowed":
                raise
            return None
        return result

    async def step(self, op: tuple[Any, ...]) -> None:
        verb, *more = op
        await getattr(self, f"do_{verb}")(*more)

    async def do_grant(self, *given: str) -> None:
        await self._change("GRANT", "TO", *given)

    async def do_revoke(self, *given: str) -> None:
        await self._change("REVOKE", "FROM", *given)

    async def _change(self, verb: str, turn: str, relation: str, kind: str, name: str) -> None:
        model = self.model
        known = relation in BASE or relation in model.views
        if not known or (kind == "user" and name not in model.roles):
            return
        shown = f"{BASE.get(relation, 'VIEW')} {relation}"
        to = "EVERYBODY" if kind == "everybody" else f"{kind.upper()} {name}"
        await self.run(ADA, f"{verb} SELECT ON {shown} {turn} {to}")
        change = model.grants.add if verb == "GRANT" else model.grants.discard
        change((relation, kind, name))

    async def do_view(self, who: str, name: str, relations: tuple[str, ...], form: int) -> None:
        model, relations = self.model, self.known(relations)
        if who not in model.roles or not relations or name in model.views:
            return
        text = f"CREATE VIEW {name} AS {query_text(form, relations)}"
        made = await self.run(self.principal(who), text)
        assert (made is not None) == self.may_write(who, relations), text
        if made is not None:
            model.views[name] = View(who, relations)

    async def do_drop(self, who: str, name: str) -> None:
        model = self.model
        used = {n for v in model.views.values() for n in v.reads}
        used |= {n for q in model.queries.values() for n in q.reads}
        if who not in model.roles or name not in model.views or name in used:
            return
        dropped = await self.run(self.principal(who), f"DROP VIEW {name}")
        rank, mine = RANK[model.roles[who]], model.views[name].maker == who
        assert (dropped is not None) == (rank >= 2 or (mine and rank == 1))
        if dropped is not None:
            del model.views[name]
            model.grants = {g for g in model.grants if g[0] != name}

    async def do_query(self, who: str, relations: tuple[str, ...], form: int) -> None:
        model, relations = self.model, self.known(relations)
        if who not in model.roles or not relations or len(model.queries) >= 6:
            return
        text = query_text(form, relations)
        started = await self.run(self.principal(who), text)
        assert (started is not None) == self.may_write(who, relations), text
        if started is not None:
            model.queries[started.query.id] = Running(who, relations)

    async def do_role(self, who: str, role: str | None) -> None:
        if role is None:
            self.model.roles.pop(who, None)
        else:
            self.model.roles[who] = role

    async def do_again(self, who: str) -> None:
        """Another person gets the name of an account that was removed."""
        model, clock = self.model, self.whole._shared.clock
        self.created[who] = clock() + 1
        while clock() <= self.created[who]:
            pass
        model.roles[who] = "analyst"
        model.grants = {g for g in model.grants if g[1:] != ("user", who)}
        for made in (*model.views.values(), *model.queries.values()):
            made.maker = None if made.maker == who else made.maker

    def may_write(self, who: str, relations: tuple[str, ...]) -> bool:
        return self.model.may_all(who, relations) and self.model.roles[who] != "viewer"

    def known(self, relations: tuple[str, ...]) -> tuple[str, ...]:
        model = self.model
        return tuple(r for r in relations if r not in VIEWS or r in model.views)

    def principal(self, who: str) -> Principal:
        return Principal(who, Role(self.model.roles[who]))

    def compare(self) -> None:
        """Compare what everybody may read now, and what still runs."""
        self.whole._grants.check_running()
        self.model.settle()
        for query, running in self.model.queries.items():
            failed = self.whole.query(query).status == QueryStatus.FAILED
            assert failed == running.stopped, (query, running, self.model)
        for who in self.model.roles:
            mine = self.whole.on_behalf(self.principal(who))
            readable = {info.id for info in mine.queries()}
            for query, running in self.model.queries.items():
                may = self.model.may_all(who, running.reads)
                assert (query in readable) == may, (who, query, running, self.model)
                try:
                    mine.relation(query)
                except FederationError as error:
                    refused = error.code == "not_allowed"
                else:
                    refused = False
                assert refused != may
            listed = {d.name for d in mine.definitions()} & set(READABLE)
            named = {n for n in (*BASE, *LIBRARY, *self.model.views) if self.model.named(who, n)}
            assert listed == named


relations = st.lists(st.sampled_from(READABLE), min_size=1, max_size=3, unique=True).map(tuple)
grantees = st.one_of(
    st.tuples(st.just("user"), st.sampled_from(PEOPLE)),
    st.tuples(st.just("role"), st.sampled_from(("viewer", "analyst"))),
    st.just(("everybody", "")),
)
people = st.sampled_from(PEOPLE)
forms = st.integers(0, 3)
grants = st.tuples(st.sampled_from((*BASE, *VIEWS)), grantees)
ops = st.one_of(
    grants.map(lambda g: ("grant", g[0], *g[1])),
    grants.map(lambda g: ("grant", g[0], *g[1])),
    grants.map(lambda g: ("revoke", g[0], *g[1])),
    st.tuples(st.just("view"), people, st.sampled_from(VIEWS), relations, forms),
    st.tuples(st.just("query"), people, relations, forms),
    st.tuples(st.just("drop"), people, st.sampled_from(VIEWS)),
    st.tuples(st.just("role"), people, st.sampled_from((None, *RANK))),
    st.tuples(st.just("again"), people),
)

_WARM = ("view", "ann", "v1", ("temperature",), 0)


@settings(max_examples=400, deadline=None)
@given(st.lists(ops, min_size=5, max_size=25))
@example(
    [
        ("grant", "temperature", "user", "ann"),
        _WARM,
        ("grant", "v1", "user", "ben"),
        ("query", "ben", ("v1",), 2),
        ("role", "ann", None),
        ("role", "ann", "analyst"),
        ("query", "ben", ("v1",), 0),
        ("again", "ann"),
    ]
)
@example(
    [
        ("grant", "link", "everybody", ""),
        ("view", "ann", "v1", ("reachable",), 0),
        ("grant", "v1", "everybody", ""),
        ("revoke", "link", "everybody", ""),
        ("grant", "link", "user", "ann"),
        ("query", "ben", ("v1", "reachable"), 0),
        ("query", "ben", ("v1",), 1),
    ]
)
@example(
    [
        ("role", "ann", "operator"),
        _WARM,
        ("grant", "v1", "role", "viewer"),
        ("query", "ben", ("v1", "temperature"), 3),
        ("query", "ben", ("v1",), 3),
        ("role", "ann", "viewer"),
        ("query", "ben", ("v1",), 3),
    ]
)
def test_everybody_reads_exactly_what_the_model_says(script: list[tuple[Any, ...]]) -> None:
    async def whole() -> None:
        with TemporaryDirectory() as folder:
            federation = Federation(Path(folder))
            try:
                running = Script(await federation.coordinator(define_schema=True))
                for op in script:
                    await running.step(op)
                    running.compare()
            finally:
                await federation.close()

    asyncio.run(whole())
