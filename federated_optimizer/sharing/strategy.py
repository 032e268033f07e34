"""The ways of sharing that can be asked for, and when a part becomes a computation of its own."""

import enum


class Strategy(enum.StrEnum):
    """Ways of answering a new query by what runs."""

    ALL = "all"
    """Everything, in any order of joins, by equal or weaker computations."""
    MATCH_PLAN = "match plan"
    """Sub-plans of the plan that the query would have alone."""
    NO_CANONICAL_FORMS = "no canonical forms"
    """As ALL, but predicates must be written alike."""
    MATCH_PLAN_WITHOUT_CANONICAL_FORMS = "match plan without canonical forms"
    NO_JOINS = "no joins"
    """As ALL, but no join, nor anything over one."""
    OFF = "off"

    @property
    def matches_plan(self) -> bool:
        """True if the plan is chosen before anything is shared."""
        return self in (self.MATCH_PLAN, self.MATCH_PLAN_WITHOUT_CANONICAL_FORMS)

    @property
    def compares_prices(self) -> bool:
        """True if a part that is there is computed anew where that adds less to the network."""
        return self != Strategy.OFF and not self.matches_plan

    @property
    def is_canonical(self) -> bool:
        """True if predicates that are written otherwise may be found equal, or weaker."""
        return self not in (self.NO_CANONICAL_FORMS, self.MATCH_PLAN_WITHOUT_CANONICAL_FORMS)


class Materialize(enum.StrEnum):
    """When a part of a query becomes a node of the network by itself."""

    WANTED_TWICE = "wanted twice"
    """When a second query wants it."""
    EAGER = "eager"
    """When a query computes it at the base."""
