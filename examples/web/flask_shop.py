"""A shop in Flask, with the blocking client.

    SPROCKET_NAMESERVERS=127.0.0.1:9876 gunicorn --chdir examples/web --preload flask_shop:app

One producer serves all threads of a process. It may be started before gunicorn forks, with
`--preload` too: it starts again in each child. Python's exit closes it.
"""

from flask import Flask, request

from sprocket import Message, SprocketError
from sprocket.client.blocking import Producer

app = Flask(__name__)
producer = Producer("shop")
producer.start()


@app.post("/views/<page>")
def viewed(page: str) -> tuple[str, int]:
    sent = producer.send(
        Message("views", page.encode(), properties={"by": request.remote_addr or ""})
    )
    return f"{sent.queue}:{sent.queue_offset}\n", 202


@app.errorhandler(SprocketError)
def unsent(error: SprocketError) -> tuple[str, int]:
    return f"{error}\n", 503
