"""Whatever bytes come from outside: `python -m tests.fuzz` tries millions of them."""
