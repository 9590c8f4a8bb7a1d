"""RocketMQ's Python client of gRPC, driven by the tests: ../README.md says by what words.

It runs with the client's own folder of libraries on its path, not in the tests' environment.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

from rocketmq import (
    ClientConfiguration,
    ConsumeResult,
    Credentials,
    FilterExpression,
    LitePushConsumer,
    LiteSimpleConsumer,
    Message,
    MessageListener,
    Producer,
    PushConsumer,
    SimpleConsumer,
    TransactionChecker,
    TransactionResolution,
)
from rocketmq.grpc_protocol import FilterType
from rocketmq.v5.exception import LiteSubscriptionQuotaExceededException

Json = dict[str, Any]

_lines = threading.Lock()


class Task:
    """One task, in a thread of its own."""

    def __init__(self, words: Json) -> None:
        self.words = words
        self.topic: str = words.get("topic", "")
        self.ended = threading.Event()
        keys = Credentials(words.get("accessKey"), words.get("secretKey"))
        self.configuration = ClientConfiguration(words["endpoint"], keys, request_timeout=30)
        self.tls: bool = words.get("tls", False)

    def run(self) -> None:
        """Do it, and tell how it went."""
        try:
            getattr(self, self.words["do"])()
        except Exception as error:
            self.tell_failure("failed", error)
        else:
            self.tell(done=True)

    def tell(self, **seen: Any) -> None:
        """Write one line."""
        with _lines:
            sys.stdout.write(json.dumps({"id": self.words["id"], **seen}) + "\n")
            sys.stdout.flush()

    def tell_failure(self, what: str, error: Exception) -> None:
        """Write what went wrong, with RocketMQ's code if there is one."""
        code = getattr(error, "code", None)
        self.tell(**{what: f"{type(error).__name__}: {error}"}, code=int(code) if code else None)

    def made(self, told: Json) -> Message:
        """A message to send."""
        message = Message()
        message.topic = self.topic
        message.body = told["body"].encode()
        if tag := told.get("tag"):
            message.tag = tag
        for key in told.get("keys", []):
            message.keys = key
        for name, value in told.get("properties", {}).items():
            message.add_property(name, value)
        if group := told.get("group"):
            message.message_group = group
        if delay_ms := told.get("delayMs"):
            # This client takes whole seconds.
            message.delivery_timestamp = int(time.time() + delay_ms / 1_000)
        if "priority" in told:
            message.priority = told["priority"]
        if lite := told.get("lite"):
            message.lite_topic = lite
        return message

    def show(self, message: Message, **more: Any) -> None:
        """Tell of a message."""
        self.tell(
            body=message.body.decode(),
            messageId=message.message_id,
            tag=message.tag,
            keys=sorted(message.keys),
            properties=dict(message.properties),
            group=message.message_group,
            attempt=message.delivery_attempt,
            lite=message.lite_topic,
            **more,
        )

    def subscription(self) -> dict[str, FilterExpression]:
        """The filter that the task names."""
        kind = FilterType.SQL if self.words.get("isSql") else FilterType.TAG
        return {self.topic: FilterExpression(self.words.get("expression", "*"), kind)}

    def send(self) -> None:
        """Send messages, and take them back if that is the task."""
        producer = Producer(self.configuration, [self.topic], tls_enable=self.tls)
        producer.startup()
        for told in self.words["messages"]:
            try:
                receipt = producer.send(self.made(told))
                handle = receipt.recall_handle
                self.tell(sent=told["body"], messageId=receipt.message_id, handle=handle)
                if self.words.get("recall"):
                    self.tell(recalled=producer.recall_message(self.topic, handle))
            except Exception as error:
                self.tell_failure("refused", error)
        producer.shutdown()

    def transact(self) -> None:
        """Send messages in transactions that end as their bodies say."""
        task = self

        class Checker(TransactionChecker):
            def check(self, message: Message) -> TransactionResolution:
                body = message.body.decode()
                task.tell(asked=body)
                if body == "commit later":
                    return TransactionResolution.COMMIT
                return TransactionResolution.ROLLBACK

        producer = Producer(
            self.configuration, [self.topic], checker=Checker(), tls_enable=self.tls
        )
        producer.startup()
        self.tell(ready=True)
        for told in self.words["messages"]:
            try:
                transaction = producer.begin_transaction()
                producer.send(self.made(told), transaction)
                if told["body"] == "commit":
                    transaction.commit()
                elif told["body"] == "rollback":
                    transaction.rollback()
                self.tell(sent=told["body"])
            except Exception as error:
                self.tell_failure("refused", error)
        self.ended.wait()
        producer.shutdown()

    def receive(self) -> None:
        """Receive and settle messages, until the end."""
        words = self.words
        await_s = max(1, words["awaitMs"] // 1_000)
        consumer: SimpleConsumer
        if "lites" in words:
            consumer = LiteSimpleConsumer(
                self.topic, self.configuration, words["group"], await_duration=await_s
            )
        else:
            consumer = SimpleConsumer(
                self.configuration,
                words["group"],
                self.subscription(),
                await_duration=await_s,
                tls_enable=self.tls,
            )
        consumer.startup()
        self.subscribe_lites(consumer)
        self.tell(ready=True)
        while not self.ended.is_set():
            try:
                for message in consumer.receive(words["max"], words["invisibleMs"] // 1_000) or []:
                    self.settle(consumer, message)
            except Exception as error:
                self.tell_failure("refused", error)
                time.sleep(0.2)
        consumer.shutdown()

    def subscribe_lites(self, consumer: Any) -> None:
        """Subscribe the lite topics that the task names; their names have one character.

        This client does not wait for its settings, and refuses all until it has them. It takes the
        name of a lite topic for a list of names of one character each.
        """
        for lite in self.words.get("lites", ()):
            for _ in range(100):
                try:
                    consumer.subscribe_lite(lite)
                    break
                except LiteSubscriptionQuotaExceededException:
                    time.sleep(0.1)

    def settle(self, consumer: SimpleConsumer, message: Message) -> None:
        """Acknowledge a message, or what the task says of its first delivery."""
        then = self.words.get("then", "ack") if message.delivery_attempt == 1 else "ack"
        try:
            if then == "change":
                consumer.change_invisible_duration(message, self.words["changeMs"] // 1_000)
                self.show(message, changed=True)
            elif then == "nothing":
                self.show(message, left=True)
            else:
                consumer.ack(message)
                self.show(message, acked=True)
        except Exception as error:
            self.tell_failure("refused", error)
            self.show(message)

    def consume(self) -> None:
        """Consume by a listener, until the end."""
        task, words = self, self.words

        class Listener(MessageListener):
            def consume(self, message: Message) -> ConsumeResult:
                body = message.body.decode()
                fails = body in words.get("fails", []) or (
                    body in words.get("failsOnce", []) and message.delivery_attempt == 1
                )
                task.show(message, failed=fails)
                return ConsumeResult.FAILURE if fails else ConsumeResult.SUCCESS

        consumer: PushConsumer
        if "lites" in words:
            consumer = LitePushConsumer(
                self.configuration,
                words["group"],
                self.topic,
                Listener(),
                consumption_thread_count=4,
            )
        else:
            consumer = PushConsumer(
                self.configuration,
                words["group"],
                Listener(),
                self.subscription(),
                consumption_thread_count=4,
                tls_enable=self.tls,
            )
        consumer.startup()
        self.subscribe_lites(consumer)
        self.tell(ready=True)
        self.ended.wait()
        consumer.shutdown()


def main() -> None:
    """Do what standard input says, until its end."""
    tasks: dict[int, Task] = {}
    for line in sys.stdin:
        words = json.loads(line)
        if "end" in words:
            tasks[words["end"]].ended.set()
            continue
        task = tasks[words["id"]] = Task(words)
        threading.Thread(target=task.run, daemon=True).start()
    # The client's own threads need not end.
    os._exit(0)


main()
