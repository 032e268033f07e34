-- The floors of a Brick model, each with its number of rooms.
--
-- Reads brick_entities(entity, class, kind) and brick_relations(subject, predicate, object), tables of
-- source 'rdf'.
CREATE VIEW brick_floors (floor, rooms) AS
  SELECT f.entity, COUNT(r.entity)
  FROM brick_entities f
    LEFT JOIN (
      SELECT p.subject AS floor, e.entity
      FROM brick_relations p JOIN brick_entities e ON e.entity = p.object
      WHERE p.predicate = 'hasPart' AND e.kind = 'room'
    ) r ON r.floor = f.entity
  WHERE f.kind = 'floor'
  GROUP BY f.entity;
