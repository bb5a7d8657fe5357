"""An OpenAI-shaped server in this process, which misbehaves as it is told to."""

from __future__ import annotations

import json
import socket
import threading
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[str], str]


class Server:
    """Answers ``/v1/chat/completions`` and ``/v1/completions``.

    Attributes:
        answer: of a prompt.
        faults: by the number of a request (from 0): ``drop``, ``stall``, ``malformed``, ``shape``, or an HTTP
            state. ``always`` is done to every one.
        requests: bodies, in the order in which they came in.
        most_at_once: requests that were answered at the same time.
        meeting: the first requests wait here for each other, as many as its parties.
    """

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.faults: dict[int, str | int] = {}
        self.always: str | int | None = None
        self.requests: list[Any] = []
        self.keys: list[str | None] = []
        self.states: Counter[Any] = Counter()
        self.has_logprobs = True
        self.flagged: Callable[[str], bool] = lambda prompt: False
        self.most_at_once = self._now = 0
        self.meeting: threading.Barrier | None = None
        self._lock = threading.Lock()
        self._closing = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                server.handle(self)

            def log_message(self, *words: Any) -> None:
                pass

        class Http(ThreadingHTTPServer):
            request_queue_size = 128
            daemon_threads = True

            def handle_error(self, *words: Any) -> None:
                pass

        self._http = Http(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self) -> None:
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()

    def handle(self, http: BaseHTTPRequestHandler) -> None:
        body = json.loads(http.rfile.read(int(http.headers["Content-Length"])))
        with self._lock:
            number = len(self.requests)
            self.requests.append(body)
            self.keys.append(http.headers.get("Authorization"))
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            if self.meeting is not None and number < self.meeting.parties:
                self.meeting.wait(30)
            self._reply(http, body, self.always or self.faults.get(number))
        finally:
            with self._lock:
                self._now -= 1

    def _reply(self, http: BaseHTTPRequestHandler, body: Any, fault: str | int | None) -> None:
        self.states[fault] += 1
        if fault == "drop":
            http.close_connection = True
            http.connection.shutdown(socket.SHUT_RDWR)
            return
        if fault == "stall":
            self._closing.wait(30)
            http.close_connection = True
            return
        content = json.dumps(self._document(http.path, body))
        if fault == "malformed":
            content = content[: len(content) // 2]
        elif fault == "shape":
            content = '{"choices": "none"}'
        elif isinstance(fault, int):
            content = '{"error": "as told"}'
        http.send_response(fault if isinstance(fault, int) else 200)
        if fault == 429:
            http.send_header("Retry-After", "0")
        http.send_header("Content-Length", str(len(content)))
        http.end_headers()
        http.wfile.write(content.encode())

    def _document(self, path: str, body: Any) -> dict[str, Any]:
        if path == "/v1/chat/completions":
            prompt = body["messages"][-1]["content"]
            message = {"role": "assistant", "content": self.answer(prompt)}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            if self.flagged(prompt):
                choice["finish_reason"] = "content_filter"
            choices = [choice]
        else:
            assert path == "/v1/completions"
            prompts = body["prompt"] if isinstance(body["prompt"], list) else [body["prompt"]]
            choices = [self._completion(k, text, body) for k, text in enumerate(prompts)]
            choices.reverse()  # their number says which is which, not their place
        usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
        return {"object": "x", "choices": choices, "usage": usage}

    def _completion(self, index: int, text: str, body: Any) -> dict[str, Any]:
        if not body.get("echo"):
            return {"index": index, "text": self.answer(text), "finish_reason": "stop"}
        # Tokens of three characters, and one that was generated; the answer's are likely.
        tokens = [text[k : k + 3] for k in range(0, len(text), 3)] + ["!!"]
        offsets = [3 * k for k in range(len(tokens) - 1)] + [len(text)]
        prompt, _, choice = text.rpartition(":")
        likely = choice.strip() == self.answer(prompt + ":")
        values = [None] + [-0.1 if likely else -2.0] * (len(tokens) - 2) + [-50.0]
        logprobs = {"tokens": tokens, "text_offset": offsets, "token_logprobs": values, "top_logprobs": None}
        out = {"index": index, "text": text + "!!", "finish_reason": "length"}
        return out | ({"logprobs": logprobs} if self.has_logprobs else {"logprobs": None})
