-- Every circle of at most four links, with the nodes on it, once for each node it can begin at.
--
-- Reads link(src, dst). A loop-free path of at most three hops is closed by a last link.
CREATE VIEW cycle_paths (node, hops, path) AS
  WITH RECURSIVE walk (src, dst, hops, path) AS (
    SELECT src, dst, 1, '.' || src || '.' || dst || '.' FROM link WHERE src <> dst
    UNION
    SELECT l.src, w.dst, w.hops + 1, '.' || l.src || w.path
    FROM link l JOIN walk w ON l.dst = w.src
    WHERE POSITION('.' || l.src || '.' IN w.path) = 0 AND w.hops < 3)
  SELECT w.src, w.hops + 1, SUBSTRING(w.path, 2) || w.src
  FROM walk w JOIN link l ON l.src = w.dst AND l.dst = w.src
  UNION
  SELECT src, 1, src || '.' || dst FROM link WHERE src = dst;
