"""GRANT and REVOKE, rights over running queries, and the interface for one principal."""
