"""Nexmark's queries in StreamSQL, and in DuckDB's SQL for computing again.

q10 writes files and q21 needs capturing regular expressions. q12 asks for windows by the
clock of the engine: here they are by event time, because time is only ever handed in.
"""

from dataclasses import dataclass

SOURCES = """
CREATE SOURCE person (id INTEGER, name TEXT, email TEXT, credit_card TEXT, city TEXT, state TEXT,
                      ts TIMESTAMP, extra TEXT);
CREATE SOURCE auction (id INTEGER, item TEXT, description TEXT, initial_bid INTEGER,
                       reserve INTEGER, ts TIMESTAMP, expires TIMESTAMP, seller INTEGER,
                       category INTEGER, extra TEXT);
CREATE SOURCE bid (auction INTEGER, bidder INTEGER, price INTEGER, channel TEXT, url TEXT,
                   ts TIMESTAMP, extra TEXT);
CREATE SOURCE side_input (id INTEGER, value TEXT, KEY (id));
"""

DUCKDB_TABLES = """
CREATE TABLE person (id BIGINT, name TEXT, email TEXT, credit_card TEXT, city TEXT, state TEXT,
                     ts BIGINT, extra TEXT);
CREATE TABLE auction (id BIGINT, item TEXT, description TEXT, initial_bid BIGINT, reserve BIGINT,
                      ts BIGINT, expires BIGINT, seller BIGINT, category BIGINT, extra TEXT);
CREATE TABLE bid (auction BIGINT, bidder BIGINT, price BIGINT, channel TEXT, url TEXT, ts BIGINT,
                  extra TEXT);
CREATE TABLE side_input (id BIGINT, value TEXT);
"""

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND


@dataclass(frozen=True, slots=True)
class NexmarkQuery:
    """One query.

    Attributes:
        name: "q0" to "q22".
        what: In words.
        text: In StreamSQL.
        again: The same relation in DuckDB's SQL over `DUCKDB_TABLES`, times as microseconds.
        stateful: Whether more than the current event is remembered.
    """

    name: str
    what: str
    text: str
    again: str
    stateful: bool = True


def _same(name: str, what: str, text: str) -> NexmarkQuery:
    return NexmarkQuery(name, what, text, text, stateful=False)


def _bounds(size: int) -> str:
    """Return DuckDB's columns of a tumbling window."""
    return f"ts // {size} * {size} AS window_start, ts // {size} * {size} + {size} AS window_end"


_TUMBLE = 10 * _SECOND
_WINNERS = "auction a JOIN bid b ON a.id = b.auction WHERE b.ts >= a.ts AND b.ts <= a.expires"
_COUNTS = """
SELECT auction, window_start, COUNT(*) AS num
FROM HOP(bid, ts, INTERVAL '2 s', INTERVAL '10 s') GROUP BY auction, window_start, window_end"""
_COUNTS_AGAIN = f"""
SELECT auction, (ts // {2 * _SECOND} - k) * {2 * _SECOND} AS window_start, COUNT(*) AS num
FROM bid, range(5) r(k) GROUP BY ALL"""


def _ranks(column: str, key: str) -> str:
    """Return counts by price range, as q15 to q17 have them."""
    return f"""COUNT(*) AS total, COUNT(*) FILTER (WHERE price < 10000) AS low,
  COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS middle,
  COUNT(*) FILTER (WHERE price >= 1000000) AS high, COUNT(DISTINCT {column}) AS {key}"""


_STATISTICS = """COUNT(*) AS total, COUNT(*) FILTER (WHERE price < 10000) AS low,
  MIN(price) AS least, MAX(price) AS most, AVG(price) AS average, SUM(price) AS volume"""

QUERIES: tuple[NexmarkQuery, ...] = (
    _same("q0", "pass through", "SELECT auction, bidder, price, ts FROM bid"),
    _same("q1", "currency", "SELECT auction, bidder, 0.908e0 * price AS price, ts FROM bid"),
    _same("q2", "some auctions", "SELECT auction, price FROM bid WHERE auction % 123 = 0"),
    NexmarkQuery(
        "q3",
        "local items",
        text := "SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p "
        "ON a.seller = p.id WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')",
        text,
    ),
    NexmarkQuery(
        "q4",
        "average closing price by category",
        text := f"""SELECT w.category, AVG(w.final) AS price FROM (
  SELECT a.id, a.category, MAX(b.price) AS final FROM {_WINNERS} GROUP BY a.id, a.category) w
GROUP BY w.category""",
        text,
    ),
    NexmarkQuery(
        "q5",
        "hottest auctions",
        f"""SELECT c.auction, c.window_start, c.num FROM ({_COUNTS}) c JOIN (
  SELECT n.window_start, MAX(n.num) AS num FROM ({_COUNTS}) n GROUP BY n.window_start) m
ON c.window_start = m.window_start AND c.num = m.num""",
        f"""WITH c AS ({_COUNTS_AGAIN}) SELECT c.auction, c.window_start, c.num FROM c JOIN (
  SELECT window_start, MAX(num) AS num FROM c GROUP BY window_start) m
ON c.window_start = m.window_start AND c.num = m.num""",
    ),
    NexmarkQuery(
        "q6",
        "mean of the last ten prices of a seller",
        text := f"""SELECT q.seller, AVG(q.price) OVER (
  PARTITION BY q.seller ORDER BY q.bid_ts, q.id ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS mean
FROM (SELECT w.id, w.seller, w.price, w.bid_ts FROM (
    SELECT a.id, a.seller, b.price, b.ts AS bid_ts,
      ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.ts) AS n
    FROM {_WINNERS}) w WHERE w.n <= 1) q""",
        text,
    ),
    NexmarkQuery(
        "q7",
        "highest bid",
        """SELECT b.auction, b.price, b.bidder, b.ts FROM TUMBLE(bid, ts, INTERVAL '10 s') b JOIN (
  SELECT window_end, MAX(price) AS price FROM TUMBLE(bid, ts, INTERVAL '10 s')
  GROUP BY window_start, window_end) m ON b.price = m.price AND b.window_end = m.window_end""",
        f"""WITH w AS (SELECT *, {_bounds(_TUMBLE)} FROM bid)
SELECT b.auction, b.price, b.bidder, b.ts FROM w b JOIN (
  SELECT window_end, MAX(price) AS price FROM w GROUP BY window_end) m
ON b.price = m.price AND b.window_end = m.window_end""",
    ),
    NexmarkQuery(
        "q8",
        "new users who sell",
        """SELECT p.id, p.name, p.window_start FROM (
  SELECT DISTINCT id, name, window_start FROM TUMBLE(person, ts, INTERVAL '10 s')) p JOIN (
  SELECT DISTINCT seller, window_start FROM TUMBLE(auction, ts, INTERVAL '10 s')) a
ON p.id = a.seller AND p.window_start = a.window_start""",
        f"""SELECT p.id, p.name, p.window_start FROM (
  SELECT DISTINCT id, name, window_start FROM (SELECT *, {_bounds(_TUMBLE)} FROM person)) p JOIN (
  SELECT DISTINCT seller, window_start FROM (SELECT *, {_bounds(_TUMBLE)} FROM auction)) a
ON p.id = a.seller AND p.window_start = a.window_start""",
    ),
    NexmarkQuery(
        "q9",
        "winning bids",
        text := f"""SELECT w.id, w.item, w.seller, w.bidder, w.price, w.bid_ts FROM (
  SELECT a.id, a.item, a.seller, b.bidder, b.price, b.ts AS bid_ts,
    ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.ts) AS n
  FROM {_WINNERS}) w WHERE w.n <= 1""",
        text,
    ),
    NexmarkQuery(
        "q11",
        "sessions of bidders",
        """SELECT bidder, window_start, window_end, COUNT(*) AS num
FROM SESSION(bid, ts, INTERVAL '1 s', bidder) GROUP BY bidder, window_start, window_end""",
        f"""SELECT bidder, MIN(ts), MAX(ts) + {_SECOND}, COUNT(*) FROM (
  SELECT bidder, ts, SUM(fresh) OVER (PARTITION BY bidder ORDER BY ts) AS session FROM (
    SELECT bidder, ts, CASE WHEN ts - LAG(ts) OVER (PARTITION BY bidder ORDER BY ts) < {_SECOND}
      THEN 0 ELSE 1 END AS fresh FROM bid)) GROUP BY bidder, session""",
    ),
    NexmarkQuery(
        "q12",
        "bids of a bidder by the window",
        """SELECT bidder, window_start, COUNT(*) AS num
FROM TUMBLE(bid, ts, INTERVAL '10 s') GROUP BY bidder, window_start, window_end""",
        f"""SELECT bidder, window_start, COUNT(*) FROM (SELECT *, {_bounds(_TUMBLE)} FROM bid)
GROUP BY bidder, window_start""",
    ),
    NexmarkQuery(
        "q13",
        "bids with a stored table",
        text := "SELECT b.auction, b.bidder, b.price, b.ts, s.value "
        "FROM bid b JOIN side_input s ON b.auction % 1000 = s.id",
        text,
    ),
    _same(
        "q14",
        "calculation",
        """SELECT auction, bidder, 0.908e0 * price AS price,
  CASE WHEN price >= 50000 THEN 'high' WHEN price >= 1000 THEN 'middle' ELSE 'low' END AS class,
  LENGTH(extra) - LENGTH(REPLACE(extra, 'c', '')) AS c_counts
FROM bid WHERE 0.908e0 * price > 1000 AND 0.908e0 * price < 50000""",
    ),
    NexmarkQuery(
        "q15",
        "bids of the day",
        f"""SELECT DATE_TRUNC('day', ts) AS day, {_ranks("bidder", "bidders")} FROM bid
GROUP BY DATE_TRUNC('day', ts)""",
        f"""SELECT ts // {_DAY} * {_DAY} AS day, {_ranks("bidder", "bidders")} FROM bid
GROUP BY ts // {_DAY} * {_DAY}""",
    ),
    NexmarkQuery(
        "q16",
        "bids of the day by channel",
        f"""SELECT channel, DATE_TRUNC('day', ts) AS day, {_ranks("auction", "auctions")} FROM bid
GROUP BY channel, DATE_TRUNC('day', ts)""",
        f"""SELECT channel, ts // {_DAY} * {_DAY} AS day, {_ranks("auction", "auctions")} FROM bid
GROUP BY channel, ts // {_DAY} * {_DAY}""",
    ),
    NexmarkQuery(
        "q17",
        "statistics of an auction by the day",
        f"""SELECT auction, DATE_TRUNC('day', ts) AS day, {_STATISTICS} FROM bid
GROUP BY auction, DATE_TRUNC('day', ts)""",
        f"""SELECT auction, ts // {_DAY} * {_DAY} AS day, {_STATISTICS} FROM bid
GROUP BY auction, ts // {_DAY} * {_DAY}""",
    ),
    NexmarkQuery(
        "q18",
        "last bid of a bidder",
        text := """SELECT w.auction, w.bidder, w.price, w.ts FROM (
  SELECT auction, bidder, price, ts,
    ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY ts DESC) AS n FROM bid) w
WHERE w.n <= 1""",
        text,
    ),
    NexmarkQuery(
        "q19",
        "ten best bids of an auction",
        text := """SELECT w.auction, w.bidder, w.price, w.ts FROM (
  SELECT auction, bidder, price, ts,
    ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC, ts) AS n FROM bid) w
WHERE w.n <= 10""",
        text,
    ),
    NexmarkQuery(
        "q20",
        "bids with their auction",
        text := "SELECT b.auction, b.bidder, b.price, b.ts, a.item, a.seller, a.category "
        "FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10",
        text,
    ),
)
