"""Parts of the benchmark of a fleet: simulated gateways, and the baseline that counts messages."""
