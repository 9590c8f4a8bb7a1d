"""Who is connected: group membership, requests to clients, registration at name servers."""
