-- All paths of fewest hops between every two connected nodes, with the nodes on them.
--
-- Reads link(src, dst). The least number of hops is joined back to the paths; it is pushed into the
-- recursion all the same, so only the shortest are ever followed.
CREATE VIEW shortest_paths (src, dst, hops, path) AS
  WITH RECURSIVE walk (src, dst, hops, path) AS (
    SELECT src, dst, 1, src || '.' || dst FROM link
    UNION
    SELECT l.src, w.dst, w.hops + 1, l.src || '.' || w.path
    FROM link l JOIN walk w ON l.dst = w.src),
  least (src, dst, hops) AS (SELECT src, dst, MIN(hops) FROM walk GROUP BY src, dst)
  SELECT w.src, w.dst, w.hops, w.path
  FROM walk w JOIN least m ON m.src = w.src AND m.dst = w.dst AND m.hops = w.hops;
