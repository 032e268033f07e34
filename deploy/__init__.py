"""Ways to run Pando: all services on one machine, or each in its own container."""
