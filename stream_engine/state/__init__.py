"""What operators remember: sources, indexed relations, expiry queues, ordered multisets."""
