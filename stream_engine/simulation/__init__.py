"""Many sites in one process, under seeded adversarial networks."""
