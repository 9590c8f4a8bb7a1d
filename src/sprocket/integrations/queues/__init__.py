"""Task queues on topics: what integrations of task queues have in common."""
