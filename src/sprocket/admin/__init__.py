"""The operations that an operator can do, each implemented once. Results are typed."""
