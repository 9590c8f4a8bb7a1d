"""What a proxy answers to gRPC requests, right ones and wrong ones, as text that can be compared.

A *story* is a function that makes calls; what it is answered is its transcript: for each call the
status of gRPC and the messages, without what differs from run to run. The transcripts of RocketMQ's
own proxy are in `tests/golden/grpc/answers.json`; `test_grpc_answers.py` compares.
"""

from __future__ import annotations

import base64
import itertools
import json
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self

from google.protobuf import json_format
from google.protobuf.message import Message

from sprocket.proxy.messages import rocketmq_pb2 as pb
from tests.compat import clients5

Json = dict[str, Any]
Transcript = list[Json]

#: Fields whose values differ from run to run; only whether they are there is compared.
_VOLATILE = {
    *("transactionId", "receiptHandle", "recallHandle", "bornHost", "storeHost", "nonce"),
    *("bornTimestamp", "storeTimestamp", "deliveryTimestamp"),
}

#: Fields that tell how much was stored before; those of lite topics, which ours does not have; and
#: one that RocketMQ's proxy leaves empty.
_DROPPED = {"offset", "liteSubscriptionQuota", "maxLiteTopicSize", "invisibleDuration"}

#: Methods whose messages are named otherwise than they are.
_MESSAGES = {"Telemetry": ("TelemetryCommand", "TelemetryCommand")}


class Asker:
    """Makes calls at a proxy; calls of several threads are made beside each other."""

    def __init__(self, endpoint: str) -> None:
        """Start the process that makes the calls."""
        self.endpoint = endpoint
        self._numbers = itertools.count()
        self._writing = threading.Lock()
        self._answers: dict[int, Future[Json]] = {}
        command, environment = clients5.python_program("raw.py")
        self._process = subprocess.Popen(
            [*command, endpoint], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def call(
        self, method: str, *requests: bytes, metadata: Mapping[str, str], timeout_s: float
    ) -> Json:
        """Make one call, and return all of its answer."""
        number = next(self._numbers)
        words = {
            "id": number,
            "method": method,
            "requests": [base64.b64encode(each).decode() for each in requests],
            "metadata": dict(metadata),
            "timeout_s": timeout_s,
        }
        assert self._process.stdin is not None
        future = self._answers[number] = Future()
        with self._writing:
            self._process.stdin.write(json.dumps(words).encode() + b"\n")
            self._process.stdin.flush()
        answer = future.result(timeout_s + 60.0)
        answer["messages"] = [base64.b64decode(text) for text in answer["messages"]]
        return answer

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                answer = json.loads(line)
                self._answers.pop(answer.pop("id")).set_result(answer)

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._reading.join()


class Teller:
    """One story: its calls, and what they were answered."""

    def __init__(self, asker: Asker, name: str) -> None:
        """Begin; the client is named for the story."""
        self._asker = asker
        self.endpoint = asker.endpoint
        self.client_id = name.replace(" ", "-")
        self.transcript: Transcript = []
        #: The last answer's messages, as they came.
        self.last: list[Any] = []

    def ask(
        self,
        method: str,
        *requests: Json,
        metadata: Mapping[str, str | None] | None = None,
        timeout_s: float = 25.0,
    ) -> list[Any]:
        """Make a call, and note what is answered; metadata that is None is left out."""
        encoded = (
            json_format.ParseDict(request, _message(method, 0)).SerializeToString()
            for request in requests
        )
        return self.ask_bytes(method, *encoded, metadata=metadata, timeout_s=timeout_s)

    def ask_bytes(
        self,
        method: str,
        *requests: bytes,
        metadata: Mapping[str, str | None] | None = None,
        timeout_s: float = 25.0,
    ) -> list[Any]:
        """Make a call whose request is any bytes."""
        usual: Mapping[str, str | None] = {
            "x-mq-client-id": self.client_id,
            "x-mq-language": "PYTHON",
            "x-mq-client-version": "5.1.2",
            "x-mq-protocol": "v2",
        }
        all_metadata = {k: v for k, v in {**usual, **(metadata or {})}.items() if v is not None}
        answer = self._asker.call(method, *requests, metadata=all_metadata, timeout_s=timeout_s)
        self.last = [_read(method, each) for each in answer["messages"]]
        shown = [self._shown(json_format.MessageToDict(each)) for each in self.last]
        self.transcript.append({"method": method, "status": answer["status"], "messages": shown})
        return self.last

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        time.sleep(seconds)

    def _shown(self, value: Any, name: str = "") -> Any:
        if name in _VOLATILE:
            return "*"
        if isinstance(value, dict):
            if name == "addresses":
                return value
            return {
                key: self._shown(item, key)
                for key, item in sorted(value.items())
                if key not in _DROPPED and not (name == "status" and key == "message")
            }
        if isinstance(value, list):
            shown = [self._shown(item, name) for item in value]
            return [
                "the proxy's" if _address(item) == self._asker.endpoint else item for item in shown
            ]
        return value


def _address(value: object) -> str:
    return f"{value.get('host')}:{value.get('port')}" if isinstance(value, dict) else ""


def _message(method: str, which: int) -> Message:
    names = _MESSAGES.get(method, (f"{method}Request", f"{method}Response"))
    made: Message = getattr(pb, names[which])()
    return made


def _read(method: str, data: bytes) -> Message:
    message = _message(method, 1)
    message.ParseFromString(data)
    return message


Story = Callable[[Teller], None]
STORIES: dict[str, Story] = {}


def story(function: Story) -> Story:
    """Put a function among the stories, under its name."""
    STORIES[function.__name__.replace("_", " ")] = function
    return function


def tell_all(endpoint: str) -> dict[str, Transcript]:
    """Have every story told beside the others; an error ends its story and is its last word."""

    def tell(name: str) -> Transcript:
        teller = Teller(asker, name)
        try:
            STORIES[name](teller)
        except Exception as error:
            teller.transcript.append({"error": f"{type(error).__name__}: {error}"})
        return teller.transcript

    with Asker(endpoint) as asker, ThreadPoolExecutor(len(STORIES)) as pool:
        return dict(zip(STORIES, pool.map(tell, STORIES), strict=True))
