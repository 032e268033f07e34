-- How many levels a tree has below each of its inner nodes.
--
-- Reads parent(child, ancestor): each node and the one above it. The bound of 64 levels ends the
-- recursion when the links form no tree.
CREATE VIEW subtree_height (node, height) AS
  WITH RECURSIVE below (node, child, depth) AS (
    SELECT ancestor, child, 1 FROM parent
    UNION
    SELECT b.node, p.child, b.depth + 1
    FROM below b JOIN parent p ON p.ancestor = b.child
    WHERE b.depth < 64)
  SELECT node, MAX(depth) FROM below GROUP BY node;
