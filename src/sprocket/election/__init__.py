"""Election: who is the master of a group of brokers, decided outside of them."""
