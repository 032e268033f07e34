-- The equipment of a Brick model, each with what it feeds.
--
-- Reads brick_entities(entity, class, kind) and brick_relations(subject, predicate, object), tables of
-- source 'rdf'. Equipment that feeds nothing has NULL there; one that feeds two has two rows.
CREATE VIEW brick_equipment (equipment, class, feeds, feeds_class) AS
  SELECT e.entity, e.class, f.entity, f.class
  FROM brick_entities e
    LEFT JOIN (
      SELECT r.subject AS equipment, t.entity, t.class
      FROM brick_relations r JOIN brick_entities t ON t.entity = r.object
      WHERE r.predicate = 'feeds'
    ) f ON f.equipment = e.entity
  WHERE e.kind = 'equipment';
