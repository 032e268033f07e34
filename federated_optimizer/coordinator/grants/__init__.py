"""GRANT and REVOKE, and rights over running queries."""
