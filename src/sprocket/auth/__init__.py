"""Who may do what: users, what they may do, what a request needs, and the check of both. Pure.

The model is that of RocketMQ 5's authentication and authorization ("ACL 2.0"), with the order of
precedence that its documents promise: `policies` says which entry decides.
"""
