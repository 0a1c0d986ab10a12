"""A server process of a replica's own."""

import asyncio
import ctypes
import os
import re
import signal
import sys

_ADDRESS = re.compile(rb'"addr": ?"(127\.0\.0\.1:\d+)"')
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def _die_with_parent() -> None:  # between fork and exec: a replica that is killed leaves no server
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class Child:
    """A process that says on standard error where it listens, as JSON: {"addr":"127.0.0.1:PORT"}."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, command: list[str]) -> "Child":
        env = {
            **os.environ,
            "LUTRA_LOG_FORMAT": "json",
            "LUTRA_SERVER_LAME_DUCK": "0s",
        }  # Ray has sent others elsewhere
        return cls(
            await asyncio.create_subprocess_exec(
                *command,
                env=env,
                stdin=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                preexec_fn=_die_with_parent,
            )
        )

    async def _read(self) -> None:
        """Passes on what the process says, to the replica's log."""
        assert self._process.stderr is not None
        said = b""
        while data := await self._process.stderr.read(1 << 16):
            sys.stderr.write(data.decode(errors="replace"))
            sys.stderr.flush()
            if not self._address.done():
                said = (said + data)[-(1 << 16) :]
                if found := _ADDRESS.search(said):
                    self._address.set_result(found[1].decode())
        if not self._address.done():
            self._address.set_exception(RuntimeError(f"the server ends: {said[-1000:].decode(errors='replace')}"))

    async def address(self) -> str:
        """HOST:PORT, or the error of a process that ended before."""
        return await asyncio.shield(self._address)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.returncode is None

    async def stop(self, timeout: float) -> None:
        """Lets running requests end, for timeout seconds at most."""
        if self.running:
            self._process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), timeout)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await self._reading
