"""The deployment that owns servers: one process a replica."""

import asyncio
import re
from collections.abc import AsyncIterator

import aiohttp
from ray import serve
from ray.util.metrics import Gauge
from yarl import URL

from .child import Child
from .message import Ask, Head, Unanswered, end_to_end
from .settings import Settings

_SEQUENCES = re.compile(r"^vllm:num_requests_(running|waiting)(?:\{[^}]*\})? ([0-9.e+]+)$", re.MULTILINE)

_PLAIN = {"Accept-Encoding": "identity"}


class Server:
    async def __init__(self, settings: Settings) -> None:  # type: ignore[misc]  # Ray awaits it
        self._drain_s = settings.drain_s
        self._replica = serve.get_replica_context().replica_id.unique_id
        self._gauges = {
            kind: Gauge(
                f"lutra_sequences_{kind}", f"Sequences {kind} on a server.", tag_keys=("replica",)
            ).set_default_tags({"replica": self._replica})
            for kind in ("running", "waiting")
        }
        self._child = await Child.start(settings.command())
        self._url = "http://" + await self._child.address()
        self._client = aiohttp.ClientSession(
            auto_decompress=False,
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None, connect=10),  # the server limits requests itself
        )
        while await self._status("/readyz") != 200:
            if not self._child.running:
                raise RuntimeError("the server ended while it loaded its models; its log is above")
            await asyncio.sleep(0.2)

    async def _status(self, path: str) -> int:
        try:
            async with self._client.get(self._url + path, timeout=aiohttp.ClientTimeout(total=5)) as answer:
                return answer.status
        except (aiohttp.ClientError, TimeoutError):
            return 0

    async def check_health(self) -> None:
        """Fails where the process is gone, hangs, or is not ready; Ray then replaces the replica."""
        if (status := await self._status("/readyz")) != 200:
            raise RuntimeError(f"/readyz of process {self._child.pid} answers {status or 'nothing'}")

    async def record_autoscaling_stats(self) -> dict[str, float]:
        """Tells QueuePolicy, and Ray's metrics, what there is to do."""
        counts = {"running": 0.0, "waiting": 0.0}
        if self._child.running:
            async with self._client.get(
                self._url + "/metrics", headers=_PLAIN, timeout=aiohttp.ClientTimeout(total=5)
            ) as answer:
                for kind, value in _SEQUENCES.findall(await answer.text()):
                    counts[kind] += float(value)
        for kind, value in counts.items():
            self._gauges[kind].set(value)
        return {"sequences": sum(counts.values())}

    def _ask(self, ask: Ask) -> aiohttp.client._RequestContextManager:
        return self._client.request(
            ask.method,
            URL(self._url + ask.target, encoded=True),
            headers=[(k.decode("latin-1"), v.decode("latin-1")) for k, v in ask.headers],
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            data=ask.body or None,
            allow_redirects=False,
        )

    async def relay(self, ask: Ask) -> AsyncIterator[Head | bytes]:
        """Gives the server's answer: its head once the first of its body is there, then the body
        as it comes. An error before that is Unanswered."""
        try:
            answer = await self._ask(ask)
            first = await answer.content.readany()
        except (aiohttp.ClientError, TimeoutError) as e:
            raise Unanswered(self._replica, f"{type(e).__name__}: {e}") from None
        async with answer:
            yield Head(self._replica, answer.status, end_to_end(list(answer.raw_headers)))
            yield first
            async for chunk in answer.content.iter_any():
                yield chunk

    async def fetch(self, ask: Ask) -> tuple[Head, bytes]:
        """Gives an answer in one piece."""
        async with self._ask(ask) as answer:
            return Head(self._replica, answer.status, end_to_end(list(answer.raw_headers))), await answer.read()

    async def __del__(self) -> None:
        if hasattr(self, "_child"):
            await self._child.stop(self._drain_s)
        if hasattr(self, "_client"):
            await self._client.close()
