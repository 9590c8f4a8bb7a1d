"""TLS under the connections of servers and clients; see docs/decisions/0015-tls.md."""
