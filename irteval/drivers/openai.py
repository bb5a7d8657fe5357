"""An OpenAI-compatible server answers the items: vLLM, SGLang, llama.cpp, Ollama, hosted APIs.

``POST /chat/completions`` or ``/completions``; log-likelihoods of choices by ``echo`` with ``logprobs``,
which servers of open weights have and most hosted ones lack. Every answer is on disk before it is told.
"""

from __future__ import annotations

import logging
import os
import random
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import orjson

from irteval.drivers.answer_scoring import NUMBER, Scoring, TextScore, choice_score
from irteval.drivers.live import HarnessError, Outcomes
from irteval.drivers.prompts import Prompt
from irteval.errors import InputError
from irteval.files import append_file
from irteval.journal import whole_lines
from irteval.session import ItemReference, Response

ANSWERS_FILE = "answers.jsonl"
RETRIES = 8  # with a back-off of 1, 2, 4 … 30 s: a server that goes away for a minute is waited for
FIRST_DELAY, LONGEST_DELAY = 1.0, 30.0  # seconds
LATER = {408, 409, 425, 429, 500, 502, 503, 504, 529}  # HTTP states that go away
OWN_FAULT = {400, 413, 422}  # of this request: its item fails, others may not
PER_TOKEN = 1e-6  # prices are per million tokens

log = logging.getLogger(__name__)


class _ItemError(Exception):
    """A request that does not succeed."""

    def __init__(self, reason: str, status: Literal["error", "timeout"] = "error") -> None:
        super().__init__(reason)
        self.status: Literal["error", "timeout"] = status


class OpenAIHarness:
    """Sends prompts to a server and scores what comes back.

    Args:
        prompts: by item.
        model: the server's name of the model.
        base_url: such as ``http://localhost:8000/v1``.
        api: ``chat`` or ``completions``; choices always use the latter.
        scoring: ``exact``, ``regex``, ``choice`` or ``choice-norm``.
        pattern: for ``regex``; the last number by default.
        options: further members of the request, such as ``max_tokens``.
        timeout: seconds a request.
        retries: of a request that fails for a reason that may go away.
        first_delay: seconds before the first retry; doubled for each further one.
        prices: of a million tokens in and out; they make the cost of an answer.
        folder: where raw answers are kept; nowhere where None.
        connections: at once.

    Raises:
        InputError: the extra ``openai`` is not installed, or a pattern that is no regular expression.
    """

    def __init__(
        self,
        prompts: Mapping[str, Prompt],
        model: str,
        base_url: str,
        *,
        api: Literal["chat", "completions"] = "chat",
        scoring: Scoring = "exact",
        pattern: str | None = None,
        options: Mapping[str, Any] | None = None,
        timeout: float = 120.0,
        retries: int = RETRIES,
        first_delay: float = FIRST_DELAY,
        prices: tuple[float, float] | None = None,
        folder: Path | None = None,
        connections: int = 1,
    ) -> None:
        try:
            import urllib3
        except ImportError:
            raise InputError("needs urllib3: pip install 'irteval[openai]'", field="driver") from None
        self.prompts, self.model, self.base_url, self.api = prompts, model, base_url.rstrip("/"), api
        self.scoring: Scoring = scoring
        self.text_score = TextScore((pattern or NUMBER) if scoring == "regex" else None)
        self.options = {"temperature": 0, **(options or {})}
        self.retries, self.first_delay, self.prices = retries, first_delay, prices
        self.file = None if folder is None else folder / ANSWERS_FILE
        self._http = urllib3.PoolManager(
            maxsize=connections,
            retries=False,
            timeout=urllib3.Timeout(connect=min(timeout, 10), read=timeout),
        )
        self._timeouts = (urllib3.exceptions.TimeoutError,)
        self._faults = (urllib3.exceptions.HTTPError,)
        self._stopping = threading.Event()
        self._writing = threading.Lock()

    def recover(self, items: Sequence[ItemReference]) -> Outcomes:
        """Answers that came in and were not told."""
        if self.file is None or not self.file.is_file():
            return {}
        content = self.file.read_bytes()
        whole = whole_lines(content)
        if len(whole) < len(content):
            os.truncate(self.file, len(whole))
        kept = {line["item"]: line for line in map(orjson.loads, whole.split(b"\n")[:-1])}
        wanted = [reference.item for reference in items if reference.item in kept]
        return {item: self._response(kept[item]["answer"], self.prompts[item]) for item in wanted}

    def answer(self, items: Sequence[ItemReference]) -> Outcomes:
        """Ask the server, one item after the other."""
        return {reference.item: self._ask(self.prompts[reference.item]) for reference in items}

    def stop(self) -> None:
        """Try nothing again."""
        self._stopping.set()

    def _ask(self, prompt: Prompt) -> Response:
        try:
            answer = self._send(*self._request(prompt))
            response = self._response(answer, prompt)
        except _ItemError as error:
            log.warning("item '%s': %s", prompt.item, error)
            return Response(None, status=error.status)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            log.warning("item '%s': an answer that is not as documented: %r", prompt.item, error)
            return Response(None, status="error")
        if self.file is not None:
            line = orjson.dumps({"item": prompt.item, "answer": answer}, option=orjson.OPT_APPEND_NEWLINE)
            with self._writing:
                self.file.parent.mkdir(parents=True, exist_ok=True)
                append_file(self.file, line)
        return response

    def _request(self, prompt: Prompt) -> tuple[str, dict[str, Any]]:
        """Path and body of the request."""
        body = {"model": self.model, **self.options}
        if self.scoring in ("choice", "choice-norm"):
            texts = [f"{prompt.prompt}{choice}" for choice in prompt.choices or []]
            # One token more than wanted, for not every server takes 0; it is left out of the sums.
            return "/completions", body | {"prompt": texts, "max_tokens": 1, "echo": True, "logprobs": 1}
        if self.api == "completions":
            if prompt.prompt is None:
                raise InputError(f"item '{prompt.item}' has messages, wanted a prompt", field="prompt")
            return "/completions", body | {"prompt": prompt.prompt}
        messages = prompt.messages or [{"role": "user", "content": prompt.prompt}]
        return "/chat/completions", body | {"messages": messages}

    def _send(self, path: str, body: dict[str, Any]) -> Any:
        """The server's answer; asked again, with back-off, while the fault may go away."""
        fault = _ItemError("stopped")
        delay = self.first_delay
        for attempt in range(self.retries + 1):
            wait = 0.0
            try:
                reply = self._http.request("POST", self.base_url + path, json=body, headers=self._headers())
                if reply.status == 200:
                    return _checked(orjson.loads(reply.data))
                fault = _ItemError(f"the server says {reply.status}: {_excerpt(reply.data)}")
                if reply.status not in LATER | OWN_FAULT:
                    raise HarnessError(f"{self.base_url + path}: {fault}")
                if reply.status in OWN_FAULT:
                    raise fault
                wait = _seconds(reply.headers.get("Retry-After"))
            except self._timeouts as error:
                fault = _ItemError(f"no answer in time: {error}", "timeout")
            except self._faults as error:
                fault = _ItemError(f"{self.base_url}: {error}")
            except orjson.JSONDecodeError as error:
                fault = _ItemError(f"an answer that is no JSON: {error}")
            except (KeyError, TypeError, IndexError, ValueError) as error:
                fault = _ItemError(f"an answer that is not as documented: {error!r}")
            # Jitter, so that many requests do not come back at once.
            pause = max(wait, delay * random.uniform(0.5, 1))
            if attempt == self.retries or self._stopping.wait(pause):
                break
            delay = min(2 * delay, LONGEST_DELAY)
        raise fault

    def _headers(self) -> dict[str, str]:
        key = os.environ.get("OPENAI_API_KEY")
        return {"Authorization": f"Bearer {key}"} if key else {}

    def _response(self, answer: Any, prompt: Prompt) -> Response:
        """The outcome of an item, from the server's answer."""
        tokens, cost = self._usage(answer)
        first = min(answer["choices"], key=lambda choice: choice.get("index", 0))
        if first.get("finish_reason") == "content_filter":
            return Response(None, status="error", tokens=tokens, cost=cost)
        if self.scoring in ("choice", "choice-norm"):
            values = _log_likelihoods(answer["choices"], prompt)
            score = choice_score(values, prompt, by_length=self.scoring == "choice-norm")
        else:
            text = first["text"] if "text" in first else first["message"].get("content")
            score = self.text_score(text or "", prompt)
        return Response(score, tokens=tokens, cost=cost)

    def _usage(self, answer: Any) -> tuple[int | None, float | None]:
        """Tokens in and out, and what they cost."""
        usage = answer.get("usage") or {}
        given, made = usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
        tokens = int(usage.get("total_tokens") or given + made) or None
        if self.prices is None or tokens is None:
            return tokens, None
        return tokens, PER_TOKEN * (self.prices[0] * given + self.prices[1] * made)


def _checked(answer: Any) -> Any:
    """The answer, where it has what is needed of it."""
    for choice in answer["choices"]:
        if "text" not in choice and not isinstance(choice["message"], dict):
            raise TypeError("message")
    if not answer["choices"]:
        raise ValueError("no choices")
    return answer


def _log_likelihoods(choices: Sequence[Any], prompt: Prompt) -> list[float]:
    """Summed log-probability of each choice's tokens, told from the prompt's by their place in the text."""
    values = []
    start = len(prompt.prompt or "")
    answers = sorted(choices, key=lambda choice: choice.get("index", 0))
    if len(answers) != len(prompt.choices or []):
        raise _ItemError(f"{len(answers)} answers to {len(prompt.choices or [])} choices")
    for answer, choice in zip(answers, prompt.choices or [], strict=True):
        logprobs = answer.get("logprobs")
        if not logprobs or not logprobs.get("token_logprobs") or "text_offset" not in logprobs:
            raise HarnessError("the server gives no log-probabilities of the prompt (echo with logprobs)")
        tokens = zip(logprobs["tokens"], logprobs["text_offset"], logprobs["token_logprobs"], strict=True)
        # A token that begins in the prompt and reaches into the choice belongs to the choice.
        own = [value for text, at, value in tokens if at + len(text) > start and at < start + len(choice)]
        if not own or any(value is None for value in own):
            raise _ItemError("no log-probability of a choice")
        values.append(float(sum(own)))
    return values


def _seconds(text: str | None) -> float:
    """Of a header ``Retry-After``; 0 of a date or none."""
    try:
        return min(max(float(text or 0), 0.0), 10 * LONGEST_DELAY)
    except ValueError:
        return 0.0


def _excerpt(content: bytes) -> str:
    return " ".join(content[:200].decode(errors="replace").split())
