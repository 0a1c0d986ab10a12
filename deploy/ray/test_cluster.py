"""A cluster of a head and three nodes, with a scripted server, and with lutra under load.

LUTRA_BINARY=/path/to/lutra python -m unittest -v test_cluster
"""

import asyncio
import collections
import json
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import unittest
from collections.abc import Callable
from typing import Any

import aiohttp
from ray import serve
from ray.serve._private.common import ReplicaState

from cluster import APP, BASE, HERE, Nodes, processes, replicas, until
from lutra_ray import app
from lutra_ray.settings import Settings

BINARY = os.environ.get("LUTRA_BINARY", "")
CLIENTS = 8

nodes: Nodes
folder: pathlib.Path


def setUpModule() -> None:
    global nodes, folder
    if not BINARY:
        raise unittest.SkipTest("LUTRA_BINARY names no lutra")
    folder = pathlib.Path(tempfile.mkdtemp())
    nodes = Nodes(3)


def tearDownModule() -> None:
    if BINARY:
        nodes.stop()
        shutil.rmtree(folder)


def deploy(**settings: object) -> None:
    given = {
        "min_replicas": 2,
        "max_replicas": 2,
        "upscale_delay_s": 1,
        "downscale_delay_s": 1,
        "drain_s": 30,
        **settings,
    }
    serve.run(app(Settings.model_validate(given)), name=APP)


class Relayed(unittest.IsolatedAsyncioTestCase):
    """What comes through, with a server that does as it is told."""

    notes: pathlib.Path
    settings: dict[str, Any]

    @classmethod
    def setUpClass(cls) -> None:
        cls.notes = pathlib.Path(tempfile.mkdtemp(dir=folder))
        binary = folder / "scripted"
        binary.write_text(f"#!{sys.executable}\n" + pathlib.Path(HERE, "scripted.py").read_text())
        binary.chmod(0o700)
        cls.settings = {"binary": str(binary), "arguments": f"--notes {cls.notes}", "max_body": 1 << 20}
        deploy(**cls.settings)

    async def asyncSetUp(self) -> None:
        await asyncio.to_thread(until, "two servers run", lambda: replicas() == 2)
        self.client = await self.enterAsyncContext(aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=60)))

    def ask(self, do: str) -> aiohttp.client._RequestContextManager:
        return self.client.post(BASE + "/v1/chat/completions", json={"do": do})

    async def test_a_request_and_its_answer_pass_unaltered(self) -> None:
        for method, target, body in (
            ("GET", "/v1/models", b""),
            ("DELETE", "/v1/responses/a%2Fb?x=1&y=%20", b""),
            ("POST", "/v1/chat/completions?a=b", '{"do": "nothing", "text": "Grüße"}'.encode()),
        ):
            headers = {"X-Mine": "1", "Authorization": "Bearer k", "Content-Type": "application/json"}
            async with self.client.request(
                method, aiohttp.client.URL(BASE + target, encoded=True), data=body, headers=headers
            ) as r:
                seen = await r.json()
                self.assertEqual((r.status, r.headers.getall("X-Twice")), (418, ["one", "two"]))
            self.assertEqual((seen["method"], seen["target"], seen["body"].encode()), (method, target, body))
            got = {k.lower(): v for k, v in seen["headers"]}
            self.assertLessEqual({k.lower(): v for k, v in headers.items()}.items(), got.items())
            self.assertTrue(got["host"].startswith("127.0.0.1:") and got["host"] not in BASE, got["host"])

    async def test_a_body_is_bounded(self) -> None:
        async with self.client.post(BASE + "/v1/completions", data=b" " * ((1 << 20) + 1)) as r:
            self.assertEqual((r.status, (await r.json())["error"]["code"]), (413, "request_too_large"))

    async def test_what_has_no_answer_is_repeated_elsewhere(self) -> None:
        for do in ("refuse", "die unanswered", "die behind the head"):
            async with self.ask(do) as r:
                self.assertEqual(r.status, 418, do)

    async def test_a_refusal_of_all_servers_passes(self) -> None:
        async with self.ask("refuse always") as r:
            self.assertEqual(
                (r.status, r.headers["Retry-After"], (await r.json())["error"]["message"]), (503, "7", "stopping")
            )

    async def test_an_answer_that_breaks_off_does_not_look_whole(self) -> None:
        for do in ("begin and die", "break off"):
            got = b""
            with self.assertRaises(aiohttp.ClientError, msg=do):
                async with self.ask(do) as r:
                    async for chunk in r.content.iter_any():
                        got += chunk
            self.assertIn(got[:9], (b"data: 0\n\n", b'{"half": '), do)
            await asyncio.to_thread(
                until, "the dead server is replaced", lambda: replicas() == 2 and len(processes(f"{self.notes}")) == 2
            )

    async def test_events_come_one_by_one_and_a_client_that_leaves_ends_them(self) -> None:
        async with self.ask("begin and go on") as r:
            self.assertEqual(r.headers["Content-Type"], "text/event-stream")
            self.assertEqual(await r.content.readline(), b"data: 0\n")
        await asyncio.to_thread(until, "the server sees its client gone", (self.notes / "client gone").exists, 20)

    async def test_metrics_are_of_all_servers(self) -> None:
        async with self.client.get(BASE + "/metrics") as r:
            text = await r.text()
        self.assertEqual(
            (r.status, text.count("vllm:num_requests_waiting{"), text.count("# TYPE vllm:num_requests_waiting ")),
            (200, 2, 1),
            text,
        )

    async def test_replicas_follow_the_servers_own_queues(self) -> None:
        deploy(**self.settings, min_replicas=1, max_replicas=3, target_sequences=8)
        until("one idle server", lambda: replicas() == 1 and replicas(ReplicaState.STOPPING) == 0)
        (self.notes / "waiting").write_text("20")
        until("three servers for 20 waiting sequences", lambda: replicas() == 3)
        (self.notes / "waiting").write_text("0")
        until("one idle server again", lambda: replicas() == 1)
        deploy(**self.settings)


class Load:
    """What became of the requests of a few clients."""

    def __init__(self) -> None:
        self.answers: dict[str, str] = {}  # by question: the same from every server
        self.broken = 0  # streams that had begun
        self.lost: list[str] = []
        self.asked = 0

    async def run(self, requests: int, scaling: str, over: threading.Event) -> None:
        """Asks so many, and on until something is over."""
        numbers = iter(range(100 * requests))

        async def client(session: aiohttp.ClientSession) -> None:
            for i in numbers:
                if i >= requests and over.is_set():
                    return
                await self.ask(session, i, scaling)
                self.asked += 1

        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=120)) as session:
            await asyncio.gather(*(client(session) for _ in range(CLIENTS)))

    async def ask(self, session: aiohttp.ClientSession, i: int, scaling: str) -> None:
        question = f"A box holds {2 + i % 17} eggs. Ann buys {3 + i % 19} boxes. How many eggs does she have?"
        body = {
            "messages": [{"role": "user", "content": question}],
            "seed": 1,
            "max_tokens": 100,
            "stream": i % 2 == 0,
            "test_time_scaling": scaling,
        }
        text, begun = "", False
        try:
            async with session.post(BASE + "/v1/chat/completions", json=body) as r:
                if r.status != 200:
                    raise ValueError(f"{r.status}: {(await r.text())[:300]}")
                if not body["stream"]:
                    text = (await r.json())["choices"][0]["message"]["content"]
                else:
                    whole = False
                    async for line in r.content:
                        begun = True
                        if line.startswith(b"data: [DONE]"):
                            whole = True
                        elif line.startswith(b"data: "):
                            text += "".join(c["delta"].get("content") or "" for c in json.loads(line[6:])["choices"])
                    if not whole:
                        raise ValueError("no [DONE]")
        except (aiohttp.ClientError, TimeoutError, ValueError, KeyError) as e:
            if begun:
                self.broken += 1
            else:
                self.lost.append(f"request {i}: {type(e).__name__} {e}")
            return
        if self.answers.setdefault(question, text) != text:
            self.lost.append(f"{question} is answered {self.answers[question]!r} and {text!r}")


class UnderLoad(unittest.TestCase):
    """lutra with its embedded model; each test goes on from the one before."""

    settings: dict[str, Any]

    @classmethod
    def setUpClass(cls) -> None:
        for name in ("lutra-1", "lutra-2"):  # two versions
            (folder / name).symlink_to(BINARY)
        cls.settings = {
            "binary": str(folder / "lutra-1"),
            "arguments": "--model lutra-tiny-s",
            "min_replicas": 1,
            "max_replicas": 3,
            "target_sequences": 4,
            "downscale_delay_s": 600,
        }
        deploy(**cls.settings)

    def during(self, what: str, requests: int, scaling: str, event: Callable[[], None], at_most: int = 0) -> None:
        """Lets something happen amid requests and checks what became of them."""
        load, over = Load(), threading.Event()
        clients = threading.Thread(target=lambda: asyncio.run(load.run(requests, scaling, over)))
        clients.start()
        try:
            until("clients ask", lambda: load.asked > 0)
            event()  # of the main thread: a node handles signals
        finally:
            over.set()
            clients.join()
        print(f"{what}: of {load.asked} requests {load.broken} streams broke off, lost: {len(load.lost)}", flush=True)
        self.assertEqual(load.lost, [])
        self.assertLessEqual(load.broken, at_most)

    def test_1_load_adds_replicas(self) -> None:
        self.during("scaled up", 50, "self_consistency;n=16", lambda: until("three servers", lambda: replicas() == 3))

    def test_2_a_node_dies(self) -> None:
        before = set(processes(self.settings["binary"]))

        def event() -> None:
            nodes.kill()
            until("the node's server is gone", lambda: len(before & set(processes(self.settings["binary"]))) == 2)
            until("Ray knows", lambda: replicas() == 2)
            nodes.workers.append(nodes.add())
            until("its successor runs", lambda: replicas() == 3)

        self.during("a node killed", 300, "none", event, at_most=CLIENTS)

    def test_3_an_upgrade_loses_nothing(self) -> None:
        def event() -> None:
            deploy(
                **{**self.settings, "binary": str(folder / "lutra-2"), "min_replicas": 3, "max_body": 4 << 20}
            )  # which both deployments have
            until("only the new version runs", lambda: not processes(self.settings["binary"]) and replicas() == 3)

        self.during("upgraded", 300, "none", event)

    def test_4_conversations_stay_where_their_beginning_is_computed(self) -> None:
        async def talk() -> collections.Counter[str]:
            used: collections.Counter[str] = collections.Counter()
            async with aiohttp.ClientSession() as session:
                for c in range(12):
                    history = [{"role": "system", "content": "You are a careful teacher of arithmetic."}]
                    for turn in range(4):
                        history.append(
                            {
                                "role": "user",
                                "content": f"A box holds {2 + c} eggs. Ann buys {3 + turn} boxes. How many eggs does she have?",
                            }
                        )
                        async with session.post(
                            BASE + "/v1/chat/completions", json={"messages": history, "seed": 1, "max_tokens": 60}
                        ) as r:
                            answer = await r.json()
                        history.append({"role": "assistant", "content": answer["choices"][0]["message"]["content"]})
                        if turn:
                            used["prompt"] += answer["usage"]["prompt_tokens"]
                            used["cached"] += answer["usage"]["prompt_tokens_details"]["cached_tokens"]
            return used

        used = asyncio.run(talk())
        share = used["cached"] / used["prompt"]
        print(f"prompt tokens of later turns found in the cache: {share:.0%}")
        self.assertGreater(share, 0.5)

    def test_5_nothing_is_left_behind(self) -> None:
        serve.delete(APP)
        until(
            "no server runs", lambda: not processes(str(folder / "lutra-1")) and not processes(str(folder / "lutra-2"))
        )


if __name__ == "__main__":
    unittest.main()
