"""Producers and consumers: this level has the clients, its sub-packages have their parts."""
