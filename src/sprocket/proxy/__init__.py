"""The proxy: RocketMQ 5.x's gRPC protocol in front of brokers."""
