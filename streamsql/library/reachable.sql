-- Which node can reach which over links, in any number of steps.
--
-- Reads link(src, dst). Base: every link; step: a link in front of what is reachable from its end.
-- Kept up to date as links come, go and expire.
CREATE RECURSIVE VIEW reachable (src, dst) AS
  SELECT src, dst FROM link
  UNION
  SELECT l.src, r.dst FROM link l JOIN reachable r ON l.dst = r.src;
