"""The commit log: mapped segments, what may be stored, what is damaged."""
