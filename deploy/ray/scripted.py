"""Stands in for lutra in tests: a server that does what a request's "do" says.

    scripted serve --addr 127.0.0.1:0 --threads N --notes FOLDER

FOLDER is shared by all: FOLDER/waiting holds how many sequences wait at each server.
"""

import asyncio
import json
import os
import pathlib
import sys

from aiohttp import web

NOTES = pathlib.Path(sys.argv[sys.argv.index("--notes") + 1])


def note(name: str) -> bool:
    """Leaves a note; whether it is the first of its name."""
    try:
        (NOTES / name).touch(exist_ok=False)
        return True
    except FileExistsError:
        return False


async def answer(request: web.Request) -> web.StreamResponse:
    body = await request.read()
    asked = json.loads(body) if body else {}
    match asked.get("do"):
        case "die unanswered" if note("died"):
            os._exit(1)
        case "die behind the head" if note("died later"):
            await web.StreamResponse(headers={"Content-Type": "text/event-stream"}).prepare(request)
            await asyncio.sleep(0.2)
            os._exit(1)
        case "refuse" if note("refused"):
            return web.json_response({"error": {"message": "stopping"}}, status=503)
        case "refuse always":
            return web.json_response({"error": {"message": "stopping"}}, status=503, headers={"Retry-After": "7"})
        case "begin and die" | "begin and go on" as what:
            stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await stream.prepare(request)
            try:
                for i in range(1000):
                    await stream.write(b"data: %d\n\n" % i)
                    await asyncio.sleep(0.05)
                    if i == 3 and what == "begin and die":
                        os._exit(1)
            except (ConnectionResetError, asyncio.CancelledError):
                note("client gone")
                raise
            return stream
        case "break off":
            part = web.StreamResponse(headers={"Content-Length": "1000", "Content-Type": "application/json"})
            await part.prepare(request)
            await part.write(b'{"half": ')
            await asyncio.sleep(0.2)
            os._exit(1)
    text = {
        "method": request.method,
        "target": request.raw_path,
        "headers": [[k, v] for k, v in request.headers.items()],
        "body": body.decode(),
        "pid": os.getpid(),
    }
    reply = web.json_response(text, status=418)
    reply.headers.add("X-Twice", "one")
    reply.headers.add("X-Twice", "two")
    return reply


async def ready(_: web.Request) -> web.Response:
    return web.Response(text="ready")


async def metrics(_: web.Request) -> web.Response:
    waiting = (NOTES / "waiting").read_text() if (NOTES / "waiting").exists() else "0"
    return web.Response(
        text=f'# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting{{model_name="m"}} {waiting}\nvllm:num_requests_running 0\n'
    )


async def main() -> None:
    app = web.Application(client_max_size=64 << 20)
    app.router.add_get("/readyz", ready)
    app.router.add_get("/metrics", metrics)
    app.router.add_route("*", "/{rest:.*}", answer)
    runner = web.AppRunner(app, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    print(json.dumps({"addr": f"127.0.0.1:{port}"}), file=sys.stderr, flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
