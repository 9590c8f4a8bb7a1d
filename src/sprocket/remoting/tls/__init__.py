"""TLS under the connections of servers and clients; see docs/decisions/0018-tls.md."""
