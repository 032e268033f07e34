-- How many different loop-free paths of at most four hops join every two nodes.
--
-- Reads link(src, dst). The loop check keeps each node at most once on a path; the bound keeps the
-- number of paths manageable where the network is dense.
CREATE VIEW resilience (src, dst, paths) AS
  WITH RECURSIVE walk (src, dst, hops, path) AS (
    SELECT src, dst, 1, '.' || src || '.' || dst || '.' FROM link WHERE src <> dst
    UNION
    SELECT l.src, w.dst, w.hops + 1, '.' || l.src || w.path
    FROM link l JOIN walk w ON l.dst = w.src
    WHERE POSITION('.' || l.src || '.' IN w.path) = 0 AND w.hops < 4)
  SELECT src, dst, COUNT(*) FROM walk GROUP BY src, dst;
