"""Messages for a time that the sender chooses: the timer wheel, its files, and delivery."""
