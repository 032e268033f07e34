-- The points of a Brick model (sensors, setpoints, commands, alarms), each with what it is a point of.
--
-- Reads brick_entities(entity, class, kind) and brick_relations(subject, predicate, object), tables of
-- source 'rdf'. A point of nothing has NULL there; one of two things has two rows.
CREATE VIEW brick_points (point, class, of_entity, of_class) AS
  SELECT p.entity, p.class, o.entity, o.class
  FROM brick_entities p
    LEFT JOIN (
      SELECT r.object AS point, e.entity, e.class
      FROM brick_relations r JOIN brick_entities e ON e.entity = r.subject
      WHERE r.predicate = 'hasPoint'
    ) o ON o.point = p.entity
  WHERE p.kind = 'point';
