-- How much deeper the deepest leaf below each inner node of a tree is than the highest one.
--
-- Reads parent(child, ancestor): each node and the one above it. A leaf is above nothing. The bound
-- of 64 levels ends the recursion when the links form no tree.
CREATE VIEW tree_imbalance (node, deepest, highest, imbalance) AS
  WITH RECURSIVE below (node, child, depth) AS (
    SELECT ancestor, child, 1 FROM parent
    UNION
    SELECT b.node, p.child, b.depth + 1
    FROM below b JOIN parent p ON p.ancestor = b.child
    WHERE b.depth < 64)
  SELECT b.node, MAX(b.depth), MIN(b.depth), MAX(b.depth) - MIN(b.depth)
  FROM below b LEFT JOIN parent p ON p.ancestor = b.child
  WHERE p.child IS NULL
  GROUP BY b.node;
