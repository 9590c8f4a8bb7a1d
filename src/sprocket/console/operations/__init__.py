"""What scripts and assistants can ask for: each operation declared once, with its types."""
