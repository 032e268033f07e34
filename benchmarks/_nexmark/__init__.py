"""Nexmark: an auction site's persons, auctions and bids, and its standing queries."""
