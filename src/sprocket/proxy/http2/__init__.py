"""The engine of a gRPC server: HTTP/2 and gRPC's framing, bytes in and bytes out.

It knows nothing of RocketMQ, nor of protobuf. How it is used:

    methods = {
        "/package.Service/Send": Unary(send),         # call_form.Unary, .Streaming
        "/package.Service/Receive": Streaming(receive),
    }
    async with GrpcServer(methods, host="0.0.0.0", port=8081, tls=TlsConfig()) as server:
        ...
        await server.drain(deadline)

    def send(call: GrpcCall, request: bytes) -> bytes | Awaitable[bytes]: ...

    async def receive(call: GrpcCall) -> None:
        request = await call.receive()      # None after the last one
        call.send(reply)                    # may be called from outside the task as well
        await call.drained()                # while the client does not read

`GrpcCall` has `method`, `metadata` (header names in lower case to str), `address`, `deadline` and
`is_over`; its task is cancelled with the call. `status.GrpcError(GrpcStatus.…, text)` ends a call
with a status.
"""
