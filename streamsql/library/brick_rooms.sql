-- The rooms of a Brick model, each with its floor.
--
-- Reads brick_entities(entity, class, kind) and brick_relations(subject, predicate, object), tables of
-- source 'rdf'. A room that is part of no floor has NULL there.
CREATE VIEW brick_rooms (room, class, floor) AS
  SELECT r.entity, r.class, f.entity
  FROM brick_entities r
    LEFT JOIN (
      SELECT p.object AS room, e.entity
      FROM brick_relations p JOIN brick_entities e ON e.entity = p.subject
      WHERE p.predicate = 'hasPart' AND e.kind = 'floor'
    ) f ON f.room = r.entity
  WHERE r.kind = 'room';
