-- The path of least total cost between every two connected nodes, with the nodes on it.
--
-- Reads link(src, dst, cost); costs must not be negative. The MIN above the recursion is pushed into
-- it, so dearer paths are dropped as soon as a cheaper one is known.
CREATE VIEW cheapest_path (src, dst, cost, path) AS
  WITH RECURSIVE walk (src, dst, cost, path) AS (
    SELECT src, dst, cost, src || '.' || dst FROM link
    UNION
    SELECT l.src, w.dst, l.cost + w.cost, l.src || '.' || w.path
    FROM link l JOIN walk w ON l.dst = w.src)
  SELECT src, dst, MIN(cost), ARG_MIN(path, cost) FROM walk GROUP BY src, dst;
