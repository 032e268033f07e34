-- The relation of a recorded link trace. Time is the recording's own: a link is there while its
-- newest measurement is at most 30 minutes old and delivered at least half of the packets.
CREATE LINK SOURCE Link (src TEXT, dst TEXT, cost DOUBLE, pdr DOUBLE, ts TIMESTAMP, KEY (src, dst),
                         WATERMARK FOR ts AS ts - INTERVAL '5 s')
  WITH (connector = 'replay', endpoint = 'recording', ttl = '30 min');

-- What a link carries in kilobits per second: 250 at most, less what is lost.
CREATE VIEW Channel AS SELECT src, dst, 250.0 * pdr AS bandwidth FROM Link;

-- The tree over which readings are collected: each node's parent is the best linked one among those
-- nearer to the root, which is the first node in text order.
CREATE VIEW Parent (child, ancestor) AS
  WITH RECURSIVE reached (node, hops) AS (
    SELECT MIN(src), 0 FROM Link
    UNION
    SELECT l.dst, r.hops + 1 FROM reached r JOIN Link l ON l.src = r.node),
  depth (node, hops) AS (SELECT node, MIN(hops) FROM reached GROUP BY node)
  SELECT l.dst, ARG_MIN(l.src, l.cost)
  FROM Link l
  JOIN depth above ON above.node = l.src
  JOIN depth below ON below.node = l.dst
  WHERE below.hops = above.hops + 1
  GROUP BY l.dst;
