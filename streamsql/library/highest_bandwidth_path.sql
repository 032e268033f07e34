-- The path of greatest bandwidth between every two connected nodes, with the nodes on it; of several
-- the one with fewest hops.
--
-- Reads channel(src, dst, bandwidth) and the library view widest_path. A channel leads on towards a
-- destination when what it and the rest of the way offer is all that can be had; among these the
-- shortest way is followed, so no path runs in circles.
CREATE VIEW highest_bandwidth_path (src, dst, bandwidth, path) AS
  WITH RECURSIVE onward (src, via, dst) AS (
    SELECT c.src, c.dst, rest.dst
    FROM channel c
    JOIN widest_path rest ON rest.src = c.dst
    JOIN widest_path best ON best.src = c.src AND best.dst = rest.dst
    WHERE best.bandwidth = LEAST(c.bandwidth, rest.bandwidth)),
  walk (src, dst, hops, path) AS (
    SELECT c.src, c.dst, 1, c.src || '.' || c.dst
    FROM channel c
    JOIN widest_path best
      ON best.src = c.src AND best.dst = c.dst AND best.bandwidth = c.bandwidth
    UNION
    SELECT o.src, w.dst, w.hops + 1, o.src || '.' || w.path
    FROM onward o JOIN walk w ON w.src = o.via AND w.dst = o.dst),
  shortest (src, dst, path) AS (
    SELECT src, dst, ARG_MIN(path, hops) FROM walk GROUP BY src, dst)
  SELECT best.src, best.dst, best.bandwidth, s.path
  FROM widest_path best JOIN shortest s ON s.src = best.src AND s.dst = best.dst;
