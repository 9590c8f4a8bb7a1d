"""Kombu's and Celery's own integration tests, of their source archives, on RocketMQ."""
