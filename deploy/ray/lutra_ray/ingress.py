"""The deployment that clients reach: it repeats elsewhere what has no answer yet."""

import asyncio
import dataclasses
import itertools
import json
import logging
import time
from collections.abc import AsyncIterator
from typing import Any, cast

from ray.exceptions import RayActorError, RayError
from ray.serve.exceptions import BackPressureError
from ray.serve.handle import DeploymentHandle, DeploymentResponseGenerator
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from . import conversation
from .exposition import merge
from .message import Ask, Head, Headers, Unanswered, end_to_end

log = logging.getLogger("ray.serve")

_ATTEMPTS = 6  # at least, with 0.1 s, 0.2 s ... 1.6 s between them: another server may take what one refuses
_PATIENCE_S = 30.0  # from the first failure on, where servers die: Ray starts others meanwhile


def refused(status: int, code: str, message: str, **headers: str) -> Response:
    """An error as the server words its own."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    text = json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}})
    return Response(text, status, headers, "application/json")


def raw(response: Response, headers: Headers) -> Response:
    response.raw_headers = headers
    return response


class Ingress:
    def __init__(self, servers: DeploymentHandle, max_body: int) -> None:
        self._servers = servers
        self._relay = servers.options(method_name="relay", stream=True)
        self._max_body = max_body

    async def __call__(self, request: Request) -> Response:
        body = bytearray()
        try:
            async for chunk in request.stream():
                body += chunk
                if len(body) > self._max_body:
                    return refused(413, "request_too_large", f"The body has more than {self._max_body} bytes.")
        except ClientDisconnect:
            return Response()  # nobody reads it
        ask = Ask(
            request.method,
            request.scope["raw_path"].decode("latin-1") + ("?" + request.url.query if request.url.query else ""),
            end_to_end(request.headers.raw, b"host", b"content-length"),
            bytes(body),
            conversation.key(bytes(body)) if body else None,
        )
        if request.url.path == "/metrics":
            return await self._metrics(ask)
        try:
            return await self._answer(ask)
        except BackPressureError:
            return refused(
                503,
                "overloaded",
                "Every server has enough to do, and too many requests wait already.",
                **{"Retry-After": "5"},
            )

    async def _answer(self, ask: Ask) -> Response:
        """Asks one server after the other until one begins to answer; in the end a refusal passes."""
        give_up: float | None = None
        for attempt in itertools.count(1):
            answer = cast(DeploymentResponseGenerator[Any], self._relay.remote(ask))
            try:
                head: Head = await anext(answer)
                if head.status == 503 and attempt < _ATTEMPTS:  # it stops, or has too much to do
                    answer.cancel()
                    raise Unanswered(head.replica, "503")
                first = await anext(answer, b"")  # until then nothing has been sent
                return raw(StreamingResponse(_pass_on(first, answer), head.status), head.headers)
            except (Unanswered, RayActorError) as e:
                path = ask.target.partition("?")[0]
                log.warning("%s %s has no answer, attempt %d: %s", ask.method, path, attempt, e)
                give_up = give_up or time.monotonic() + _PATIENCE_S
                if attempt >= _ATTEMPTS and time.monotonic() > give_up:
                    break
                if isinstance(e, Unanswered):
                    ask = dataclasses.replace(ask, avoid=ask.avoid | {e.replica})
                await asyncio.sleep(min(0.1 * 2 ** (attempt - 1), 1.6))
        return refused(502, "no_server", "No server answered.")

    async def _metrics(self, ask: Ask) -> Response:
        """The metrics of all servers, told apart by a label."""
        plain = [(k, v) for k, v in ask.headers if k.lower() != b"accept-encoding"] + [
            (b"accept-encoding", b"identity")
        ]
        asking = self._servers.broadcast("fetch", dataclasses.replace(ask, headers=plain))
        try:
            answers: list[tuple[Head, bytes]] = await asking.results_async(timeout_s=10)
        except (RayError, TimeoutError) as e:
            return refused(503, "no_metrics", f"Not all servers give their metrics: {type(e).__name__}.")
        for head, body in answers:
            if head.status != 200:
                return raw(Response(body, head.status), head.headers)
        return Response(
            merge({head.replica: body.decode() for head, body in answers}), media_type="text/plain; version=0.0.4"
        )


async def _pass_on(first: bytes, answer: DeploymentResponseGenerator[Any]) -> AsyncIterator[bytes]:
    """Gives what is left of an answer; an error breaks the client's connection off."""
    try:
        yield first
        async for chunk in answer:
            yield chunk
    finally:
        answer.cancel()
