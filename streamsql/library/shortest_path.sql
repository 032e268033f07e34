-- The path of fewest hops between every two connected nodes, with the nodes on it.
--
-- Reads link(src, dst). Of several paths with equally many hops the first in text order is shown.
-- On a cycle there are infinitely many paths: the MIN above the recursion is pushed into it, so only
-- the shortest are ever followed.
CREATE VIEW shortest_path (src, dst, hops, path) AS
  WITH RECURSIVE walk (src, dst, hops, path) AS (
    SELECT src, dst, 1, src || '.' || dst FROM link
    UNION
    SELECT l.src, w.dst, w.hops + 1, l.src || '.' || w.path
    FROM link l JOIN walk w ON l.dst = w.src)
  SELECT src, dst, MIN(hops), ARG_MIN(path, hops) FROM walk GROUP BY src, dst;
