"""RocketMQ's gRPC service, version 2: clients of all languages, answered from brokers."""
