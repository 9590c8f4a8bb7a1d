"""The commit log: mapped segments, checks of drafts, and the search for damage."""
