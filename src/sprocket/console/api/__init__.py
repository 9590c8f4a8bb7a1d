"""The ways to the operations: HTTP with its OpenAPI document, and MCP."""
