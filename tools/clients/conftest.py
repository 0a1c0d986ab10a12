"""What the clients' suites share: the servers that .ci/clients has started, what is asked, the table.

Each test_PACKAGE.py asks `lutra serve` through the client PACKAGE, as its documentation does. The
embedded models know arithmetic stories alone, so the checks are of what the server promises
whatever the model: forms, events, counts, errors.
"""

import importlib.metadata
import itertools
import os
import pathlib

import pytest
from pydantic import BaseModel, Field

URL = os.environ.get("LUTRA_URL", "http://127.0.0.1:8080")
MODEL = "lutra-tiny-l"
CONTEXT = 1024  # of the embedded models
EMBEDDER = "bert"
QUESTION = "A box holds 12 eggs. Ann buys 7 boxes. How many eggs does she have?"
USER = {"role": "user", "content": QUESTION}
LONG = "A box holds 12 eggs. " * 300  # more tokens than the context, fewer bytes than a body may have
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

NUMBER = {"type": "integer", "minimum": 0, "maximum": 999}
PAIR = {
    "type": "object",
    "properties": {"a": NUMBER, "b": NUMBER},
    "required": ["a", "b"],
    "additionalProperties": False,
}
NAMES = ("multiply", "add")


class Estimate(BaseModel):
    """What answers are held to."""

    eggs: int = Field(ge=0, le=999)
    sure: bool


class Guarded:
    """The server that wants keys: each is good for two requests a minute, a body has at most 64 KiB."""

    url = os.environ.get("LUTRA_GUARDED_URL", "")
    keys = itertools.count(1)

    def key(self):
        """A key that no other check uses."""
        return f"{suite().replace('_', '-')}-{next(self.keys)}"


@pytest.fixture
def guarded():
    if not Guarded.url:
        pytest.skip("LUTRA_GUARDED_URL names no server that wants keys")
    return Guarded()


def suite():
    """The client under test, as its test's file names it."""
    return os.environ.get("LUTRA_CLIENT", "")


def pytest_collection_modifyitems(items):
    """Skips the tests of a suite that its class says the embedded models are no match for."""
    for item in items:
        reason = getattr(item.cls, "beyond_the_model", {}).get(item.originalname)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_terminal_summary(terminalreporter):
    """Adds the client's line to the table."""
    table = os.environ.get("LUTRA_TABLE")
    if not table:
        return
    passed, failed, broken, skipped = (len(terminalreporter.stats.get(kind, [])) for kind in ("passed", "failed", "error", "skipped"))
    with pathlib.Path(table).open("a") as out:
        print(suite().replace("_", "-"), version(), passed, failed + broken, skipped, sep="\t", file=out)


def version():
    """The version of the package that the suite, or the beginning of its name, is called after."""
    words = suite().split("_")
    for n in range(len(words), 0, -1):
        try:
            return importlib.metadata.version("-".join(words[:n]))
        except importlib.metadata.PackageNotFoundError:
            continue
    raise ValueError(f"no package is called {suite()}")
