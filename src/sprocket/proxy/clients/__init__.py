"""The clients of a proxy: who they are, their presence at the brokers, what they have in hand."""
