"""Task queues on topics: what the integrations of Celery, taskiq and dramatiq have in common."""
