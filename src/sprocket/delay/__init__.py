"""Messages for later: the fixed levels, what is due, and its delivery."""
