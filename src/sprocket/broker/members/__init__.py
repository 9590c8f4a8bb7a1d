"""Membership of groups, requests to clients, and registration at name servers."""
