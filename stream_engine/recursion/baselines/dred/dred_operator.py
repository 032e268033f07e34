"""Delete and rederive over several sites, with barriers between its phases.

Insertions are pipelined: leaf rows go where they join, derived rows to the partition that owns
them. Deletions go in *waves* that the leading site starts when somebody has one: all sites stop
taking in leaf rows until the insertions under way have settled (CLOSE), over-delete to the
fixpoint, derive again from what is left, and open again. Base changes that arrive meanwhile wait.
Every phase ends when channel counting says so at the leader.

All of it happens within a *generation*: a list of members that began from their leaf rows together.
A site that comes, goes or begins again makes a new generation, in which everything is computed from
scratch. The first site that is not known to be lost leads. Nothing of one generation or step is
mistaken for another's, because every item is stamped with both.

The view that a site shows changes when a generation is loaded, with insertions, and with the end of
every wave; in between it stays as it was.
"""

from collections.abc import Iterator, Sequence

from typing_extensions import override

from stream_engine.recursion.absorption.recursion_outbox import RecursiveOutgoing
from stream_engine.recursion.absorption.site_recursion import SiteRecursion
from stream_engine.recursion.baselines.dred.dred_evaluation import DredCounters, Evaluation
from stream_engine.recursion.baselines.dred.dred_streams import (
    PORT,
    Generation,
    Item,
    Kind,
    Stamp,
    Streams,
)
from stream_engine.recursion.baselines.dred.generation_run import BaseRows, GenerationRun, Phase
from stream_engine.recursion.program.fixpoint_options import RecursionOptions
from stream_engine.recursion.program.placement import Router, placement_of
from stream_engine.recursion.program.program import Program
from streamsql.data.delta import Delta, accumulate, difference
from streamsql.data.types import Row
from streamsql.errors import WireError
from streamsql.wire.messages import AnnotatedRow


class Membership:
    """What a site believes of the others.

    A site is lost while no later life of it has joined than the last one declared dead. The first
    site in order that is not known to be lost leads; one that was not heard of yet is waited for.
    """

    def __init__(self, site: str, sites: tuple[str, ...], life: int) -> None:
        self._site = site
        self._sites = sites
        self._life = life
        self._joined: dict[str, int] = {}
        self._dead: dict[str, int] = {}

    def joined(self, site: str, life: int) -> None:
        """Note that a site has begun a life."""
        self._joined[site] = max(life, self._joined.get(site, life))

    def lost(self, site: str, life: int) -> None:
        """Note that this life of a site and all earlier ones are over."""
        if site != self._site:
            self._dead[site] = max(life, self._dead.get(site, life))

    def leader(self) -> str:
        """Return the leading site."""
        for site in self._sites:
            if site == self._site or not self._is_lost(site):
                return site
        return self._site

    def members(self) -> dict[str, int]:
        """Return the sites that are there, with their lives, in order."""
        return {
            site: self._life if site == self._site else self._joined[site]
            for site in self._sites
            if site == self._site or (site in self._joined and not self._is_lost(site))
        }

    def is_alive(self, site: str, life: int) -> bool:
        """Whether a life of a site is the present one as far as known."""
        return self.members().get(site) == life

    def is_over(self, site: str, life: int) -> bool:
        """Whether a life of a site is known to be over."""
        return life <= self._dead.get(site, -1) or life < self._joined.get(site, -1)

    def _is_lost(self, site: str) -> bool:
        dead = self._dead.get(site)
        return dead is not None and self._joined.get(site, dead) <= dead


class DredOperator(SiteRecursion):
    """A site's partition of a recursion that several sites maintain by delete and rederive.

    State: the leaf rows that arrived, the generation's tables, the view shown, and items that came
    before their time.

    Args:
        options: `owner` and the bounds count here.
    """

    description = "delete and rederive"
    counters: DredCounters

    def __init__(
        self,
        program: Program,
        *,
        site: str,
        sites: tuple[str, ...],
        epoch: int,
        options: RecursionOptions,
    ) -> None:
        super().__init__(program, site, sites)
        self.counters = DredCounters()
        self._options = options
        self._peers = tuple(other for other in sites if other != site)
        self._life = epoch
        self._placement = placement_of(program.rules, len(program.uses), program.group)
        self._rules = Evaluation(program, options, self.counters, self._placement)
        self._base = BaseRows(program.uses)
        self._streams = Streams(self._peers, self.counters)
        self._membership = Membership(site, sites, epoch)
        self._starts: dict[str, tuple[Generation, dict[str, int]]] = {}
        self._run: GenerationRun | None = None
        self._generations = 0
        self._inbox: list[tuple[str, Stamp, Item]] = []
        self._shown: Delta = {}
        self._has_joined = False
        self._has_news = True

    @override
    def _buffer(self, leaf: int, delta: Delta) -> None:
        self._base.buffer(leaf, delta)

    @override
    def _receive(
        self, sender: str, port: str, annotated: Sequence[AnnotatedRow], kills: Sequence[int]
    ) -> None:
        if port != PORT or kills:
            raise WireError(f"{sender}: recursion {self._program.name} has no port {port!r:.40}")
        self._has_news = True
        for row in annotated:
            items = self._streams.read(sender, row.annotation)
            self.counters.received_rows += len(items)
            for item, stamp in items:
                self._note(sender, item, stamp)

    def _note(self, sender: str, item: Item, stamp: Stamp | None) -> None:
        """Ingest what says who is there; keep the rest."""
        if item.kind is Kind.JOIN:
            self._membership.joined(sender, item.numbers[0])
        elif item.kind is Kind.START:
            number, *members = item.numbers
            if len(members) % 2 or any(index >= len(self._sites) for index in members[::2]):
                raise WireError(f"{sender}: a generation with unknown members")
            names = [self._sites[index] for index in members[::2]]
            life = self._streams.life_of(sender)
            generation = Generation(self._sites.index(sender), life, number)
            self._starts[sender] = (generation, dict(zip(names, members[1::2], strict=True)))
        else:
            self._check(sender, item, stamp)
            if stamp is not None:
                self._inbox.append((sender, stamp, item))

    def _check(self, sender: str, item: Item, stamp: Stamp | None) -> None:
        if stamp is None or stamp.generation.leader >= len(self._sites):
            raise WireError(f"{sender}: an item of no generation")
        width = self._program.width
        if item.kind in (Kind.LEAF_IN, Kind.LEAF_OUT):
            table = item.numbers[0]
            if table >= len(self.leaves) + len(self._placement.copies):
                raise WireError(f"{sender}: {self._program.name} has no leaf {table}")
            if table < len(self.leaves):
                width = len(self.leaf_columns[table])
        if item.kind.works and len(item.row) != width:
            raise WireError(f"{sender}: {len(item.row)} columns instead of {width}")

    @override
    def kill_site(self, site: str, epoch: int) -> None:
        self._membership.lost(site, epoch)
        self._has_news = True

    @property
    @override
    def is_settled(self) -> bool:
        return not self._has_news and (self._run is None or self._run.partition.is_idle)

    @override
    def _work(self, rounds: int | None) -> Delta:
        self.counters.settles += 1
        self._rules.begin()
        self._run_on(rounds)
        self._has_news = False
        return self._change_of_view()

    def _run_on(self, rounds: int | None) -> None:
        self._base.take_in()
        if not self._has_joined:
            self._has_joined = True
            for peer in self._peers:
                self._streams.send(peer, Item(Kind.JOIN, (), (self._life,)))
        self._choose_generation()
        run, left = self._run, rounds
        while run is not None:
            self._open_inbox(run)
            done = run.work(left)
            left = None if left is None else left - done
            if not run.partition.is_idle or not run.conclude():
                return

    def _choose_generation(self) -> None:
        """Lead a generation of those who are there, or follow who leads."""
        leader = self._membership.leader()
        run = self._run
        if leader == self._site:
            members = self._membership.members()
            if (
                run is None
                or run.generation.leader != self._index(leader)
                or run.members != members
            ):
                self._lead(members)
            return
        start = self._starts.get(leader)
        if start is not None and self._membership.is_alive(leader, start[0].life):
            generation, members = start
            if run is None or run.generation != generation:
                takes_part = members.get(self._site) == self._life
                self._run = self._begin(generation, members) if takes_part else None
        elif run is not None and not self._is_led_by(leader, run.generation):
            self._run = None

    def _is_led_by(self, leader: str, generation: Generation) -> bool:
        return generation.leader == self._index(leader) and self._membership.is_alive(
            leader, generation.life
        )

    def _lead(self, members: dict[str, int]) -> None:
        self._generations += 1
        generation = Generation(self._index(self._site), self._life, self._generations)
        numbers = [n for site, life in members.items() for n in (self._index(site), life)]
        for site in members:
            if site != self._site:
                self._streams.send(site, Item(Kind.START, (), (self._generations, *numbers)))
        self._run = self._begin(generation, members)

    def _begin(self, generation: Generation, members: dict[str, int]) -> GenerationRun:
        router = Router(self._placement, tuple(members), self._options.owner)
        return GenerationRun(
            generation,
            members,
            program=self._program,
            rules=self._rules,
            counters=self.counters,
            base=self._base,
            router=router,
            site=self._site,
            indexes={site: self._index(site) for site in members},
            send=self._streams.send,
        )

    def _open_inbox(self, run: GenerationRun) -> None:
        inbox, self._inbox = self._inbox, []
        for sender, stamp, item in inbox:
            if stamp.generation != run.generation:
                if not self._is_over(stamp.generation, run.generation):
                    self._inbox.append((sender, stamp, item))
            elif stamp.step > run.step:
                self._inbox.append((sender, stamp, item))
            elif stamp.step == run.step and sender in run.members:
                run.take(sender, item)

    def _is_over(self, generation: Generation, present: Generation) -> bool:
        """Whether a generation can never be the present one any more."""
        leader = self._sites[generation.leader]
        if generation.leader == present.leader:
            return generation < present
        return self._membership.is_over(leader, generation.life)

    def _index(self, site: str) -> int:
        return self._sites.index(site)

    def _change_of_view(self) -> Delta:
        """Return what the view shown has to change by now; nothing during a wave."""
        run = self._run
        if run is None or run.phase is not Phase.OPEN:
            return {}
        delta = run.partition.derived.take_changes()
        if not run.was_shown:
            run.was_shown = True
            rows = {item.row: 1 for item in run.partition.derived.shown.items}
            delta = difference(rows, self._shown)
        accumulate(self._shown, delta)
        return delta

    @override
    def drain(self) -> list[RecursiveOutgoing]:
        return self._messages()  # what is sent is counted item by item

    @override
    def _messages(self) -> list[RecursiveOutgoing]:
        return self._streams.drain()

    @override
    def state_rows(self) -> Iterator[Row]:
        return iter(self._shown)

    @override
    def clear(self) -> None:
        self._run = None
        self._inbox = []
        self._shown = {}
        self._starts = {}
        self._streams.drain()
        self._base = BaseRows(self._program.uses)
