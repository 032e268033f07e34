"""Price of a recursion on the network, by the way in which several sites compute it.

Four ways (`RecursionChoice.way`):

* centre: every change of a base row goes to one site, which has the whole view;
* flood: every change of a base row goes to every computing site, as link-state routing does; each
  has the whole view and shows a part of it;
* witness: base rows go where they join, derived rows to the site that owns them, each with one
  conjunction of tokens that supports it; a dead token is announced to all;
* annotations: the same with whole annotations, at once or, lazily, support by support.

The model is arithmetic over a steady state: base rows come and go at given rates. Its shape is that
of the measurements in performance.md 2.4 (bytes of a transit-stub network over 12 hosts, one
message a row, no envelopes); with those constants (`PAPER`) it is off by:

    links               200 sparse    400    800    1,600 dense
    inserting, witness         -6 %   +2 %   -6 %   -14 %
    inserting, annotations    -23 %  +34 %  -13 %   -18 %
    inserting, flood           -1 %    0 %    0 %    -1 %
    deleting, witness                +21 %   +1 %   -19 %
    deleting, annotations            +80 %  +17 %   -23 %

(Deleting on the sparse net is kills alone, exactly.) Ways differ by factors of ten to a thousand.

With the product's messages (`PRODUCT`) the envelope of a batch counts, too.
"""

from dataclasses import dataclass

from federated_optimizer.statistics import default_facts as defaults
from streamsql.algebra.choices import Way

WAYS = (Way.CENTRE, Way.FLOOD, Way.WITNESS, Way.ANNOTATIONS)

SUPPORT = defaults.SUPPORT.value
"""Tokens in a shortest conjunction: the hops of a path. 7.7 on every net of 2.4, whatever its size
(24.5 bytes a shipped witness, of which 9 are the row and 2 a token)."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """Bytes of what travels.

    Attributes:
        token: A token by itself: announced dead, or next to a base row.
        literal: A token inside an annotation.
        envelope: A message, whatever is in it.
    """

    token: float
    literal: float
    envelope: float


PAPER = Encoding(token=5.0, literal=2.0, envelope=0.0)
"""As counted in performance.md 2.4; six bytes a node of a diagram are three literals."""

PRODUCT = Encoding(
    token=defaults.TOKEN_BYTES.value,
    literal=defaults.LITERAL_BYTES.value,
    # The five empty fields between the reading's age and dead tokens are written.
    envelope=defaults.ENVELOPE_BYTES.value + 5.0,
)
"""Measured in the simulator (400 and 200 links, 12 sites), where messages are packed: rows of one
message share tables of values and tokens and are compressed, so a token in an annotation is nearly
nothing and an envelope is most of a small change. Against those measurements: a flooded change
+-8 %, a deletion with witnesses -17 % (12.1 of 14.6 kB), building up twice too much."""

ROWS_PER_MESSAGE = defaults.ROWS_PER_MESSAGE.value
"""Derived rows that travel together: measured 9 while inserting, 3.3 while deleting."""

HOP_MILLISECONDS = defaults.HOP_MILLISECONDS.value
"""From a step at one site to the next at another: publish, broker, callback (0.2-0.5 ms measured,
performance.md section 5) and the rest a site takes between two steps."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A recursion and what moves in it, per second.

    Attributes:
        sites: That would compute it together.
        base_rows: Rows it reads.
        inserts: Base rows that come.
        deletes: Base rows that go.
        base_bytes: Of a base row, cut to what the recursion reads.
        view_rows: Rows it has.
        view_bytes: Of a view row.
        view_changes: View rows that come or go per base row that does.
        fan: Rows that one row of the view leads to: base rows per value of the join key.
        local: Share of derivations whose row is owned where it is derived.
        at_sites: Share of base rows that arrive at the computing sites themselves.
        shown: Share of the view's changes that are wanted at the base site.
        whole: Whether whole annotations travel at once (ship = 'eager' or 'ship-all'). Shipped
            lazily a row has the first of its supports, as a witness does, and the next when that
            dies.
        fetched: Base rows a second that go to the base site and from there to a computing site:
            those that have to have a partner there.
    """

    sites: int
    base_rows: float
    inserts: float
    deletes: float
    base_bytes: float
    view_rows: float
    view_bytes: float
    view_changes: float
    fan: float
    local: float
    at_sites: float = 1.0
    shown: float = 1.0
    whole: bool = False
    fetched: float = 0.0

    @property
    def changes(self) -> float:
        """Changes of base rows per second."""
        return self.inserts + self.deletes


@dataclass(frozen=True, slots=True)
class Price:
    """What a way costs.

    Attributes:
        bytes_per_second: Between sites, with what goes to the base site.
        milliseconds: From a change of a base row to the last row it changes at the base site.
    """

    way: Way
    bytes_per_second: float
    milliseconds: float


def alternatives(fan: float) -> float:
    """Return the share of rows with another support when the shipped one dies.

    None in a tree (each node has one link up and one down: two a node), half where nodes have four.
    Measured on dense nets: 0.44 to 0.59.
    """
    return 1.0 - 2.0 / max(fan, 2.0)


def diagram_literals(fan: float) -> float:
    """Return the size of a whole annotation in literals: the supports of every way round.

    Measured in nodes of a diagram a shipped row: 10 on the sparse net, 18 to 27 on dense ones.
    """
    return 3.0 * SUPPORT * max(1.0, fan - 1.0)


def moved_per_change(view_rows: float, base_rows: float, fan: float) -> float:
    """Return how many rows of the view come or go with a base row, if nobody has counted.

    A row goes when its support held the base row (`SUPPORT` of all base rows do) and there is no
    other. In a steady state as much comes back.
    """
    held = view_rows * min(1.0, SUPPORT / max(base_rows, 1.0))
    return max(1.0, held * (1.0 - alternatives(fan)))


def price(way: Way, load: Workload, encoding: Encoding = PRODUCT) -> Price:
    """Return what a way costs."""
    match way:
        case Way.CENTRE:
            return _centre(load, encoding)
        case Way.FLOOD:
            return _flood(load, encoding)
        case Way.WITNESS:
            return _derived(way, load, encoding, encoding.literal * SUPPORT)
        case Way.ANNOTATIONS:
            literals = diagram_literals(load.fan) if load.whole else SUPPORT
            return _derived(way, load, encoding, encoding.literal * literals)
        case Way.AUTO:
            raise ValueError("no way is chosen yet, so there is no price")


def prices(load: Workload, encoding: Encoding = PRODUCT) -> tuple[Price, ...]:
    """Return the prices of all ways, in the order of `WAYS`."""
    return tuple(price(way, load, encoding) for way in WAYS)


def _centre(load: Workload, encoding: Encoding) -> Price:
    """Every change is one message to the centre, which is where the answer is wanted."""
    rows = load.changes * load.base_bytes
    return Price(Way.CENTRE, rows + load.changes * encoding.envelope, HOP_MILLISECONDS)


def _flood(load: Workload, encoding: Encoding) -> Price:
    """Every change is one message to every other site; a deletion is only the token."""
    others = load.sites - 1
    inserted = load.inserts * (load.base_bytes + encoding.token)
    flooded = others * (inserted + load.deletes * encoding.token)
    envelopes = others * load.changes * encoding.envelope
    entering = _entering(load, encoding)
    shown = _shown(load, encoding)
    return Price(Way.FLOOD, flooded + envelopes + entering + shown, 2 * HOP_MILLISECONDS)


def _derived(way: Way, load: Workload, encoding: Encoding, annotation: float) -> Price:
    """Base rows go where they join; derived rows go to their owners; dead tokens go to all.

    A row that enters the view is derived on along each of its `fan` base rows, and what is owned
    elsewhere travels once a (row, neighbour). Of the rows that rest on a dead token those with an
    alternative are shipped again. What a step derives for one site is one message.
    """
    others, away = load.sites - 1, 1.0 - load.local
    routed = load.inserts * away * (load.base_bytes + encoding.token)
    kills = load.deletes * others
    died = load.view_rows * min(1.0, SUPPORT / max(load.base_rows, 1.0))
    entering = load.inserts * load.view_changes
    again = load.deletes * died * alternatives(load.fan)
    shipped = (entering + again) * load.fan * away
    messages = load.inserts * away + kills + shipped / ROWS_PER_MESSAGE
    size = load.view_bytes + annotation
    bytes_ = routed + kills * encoding.token + shipped * size + messages * encoding.envelope
    hops = 1.0 + SUPPORT * away + 1.0
    total = bytes_ + _entering(load, encoding) + _shown(load, encoding)
    return Price(way, total, hops * HOP_MILLISECONDS)


def _entering(load: Workload, encoding: Encoding) -> float:
    """Base rows that arrive elsewhere (stored tables, windows at the base) travel to a site."""
    entering = load.changes * (1.0 - load.at_sites) + load.fetched
    return entering * (load.base_bytes + encoding.envelope)


def _shown(load: Workload, encoding: Encoding) -> float:
    """The sites send what they show to the base, at most one message a change and site."""
    rows = load.changes * load.view_changes * load.shown
    messages = min(rows, load.changes * load.sites)
    return rows * load.view_bytes + messages * encoding.envelope


# --- in words ------------------------------------------------------------------------------------

TRUST = 5
"""Factor between a price and measured bytes, once a running query has counted rows and changes:
0.55 to 4.1 over trees, rings, grids and dense nets of 24 to 36 nodes at four gateways, reachability
and cheapest paths, all ways (`tests/federated_optimizer/laws/test_prices_against_bytes.py`).
Before that rows and rates are assumed, and a price says no more than an order."""


def rounded(value: float) -> int:
    """Return a value by its first digit: a price knows no more.

    Examples:
        >>> rounded(1953.2), rounded(0.3), rounded(96.0)
        (2000, 0, 100)
    """
    if value < 1:
        return 0
    unit: int = 10 ** (len(str(int(value))) - 1)
    return round(value / unit) * unit


def times_text(factor: float) -> str:
    """Return how many times as much, by the first digit.

    Examples:
        >>> times_text(1.2), times_text(12.4)
        ('about', 'about 10 times')
    """
    return "about" if factor < 1.5 else f"about {rounded(factor):,} times"
