-- Nodes at the same depth of a tree, below a common ancestor.
--
-- Reads parent(child, ancestor): each node and the one above it.
CREATE RECURSIVE VIEW same_generation (one, other) AS
  SELECT a.child, b.child FROM parent a JOIN parent b ON a.ancestor = b.ancestor
  UNION
  SELECT a.child, b.child
  FROM same_generation g
  JOIN parent a ON a.ancestor = g.one
  JOIN parent b ON b.ancestor = g.other;
