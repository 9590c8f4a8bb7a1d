"""Options of the source and the sink: declared once, checked, parsed."""
