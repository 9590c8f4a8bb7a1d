"""Options of the source and the sink: each is declared once, parsed and checked."""
