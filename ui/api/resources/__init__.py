"""Routes by what they are about; `routes` has those of queries."""
