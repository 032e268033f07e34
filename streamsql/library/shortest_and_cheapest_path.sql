-- The path of fewest hops and the path of least cost between every two connected nodes, at once.
--
-- Reads link(src, dst, cost); costs must not be negative. Both MINs are pushed into one recursion,
-- which keeps a path as long as it is best in one of them.
CREATE VIEW shortest_and_cheapest_path (src, dst, hops, shortest, cost, cheapest) AS
  WITH RECURSIVE walk (src, dst, hops, cost, path) AS (
    SELECT src, dst, 1, cost, src || '.' || dst FROM link
    UNION
    SELECT l.src, w.dst, w.hops + 1, l.cost + w.cost, l.src || '.' || w.path
    FROM link l JOIN walk w ON l.dst = w.src)
  SELECT src, dst, MIN(hops), ARG_MIN(path, hops), MIN(cost), ARG_MIN(path, cost)
  FROM walk GROUP BY src, dst;
