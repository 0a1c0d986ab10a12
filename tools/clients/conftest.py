"""What the clients' suites share: the servers that .ci/clients has started, and what is asked.

Each test_PACKAGE.py, with its test_PACKAGE__*.py, asks `lutra serve` through the client PACKAGE, as its documentation does. The
embedded models know arithmetic stories alone, so the checks are of what the server promises
whatever the model: forms, events, counts, errors.
"""

import itertools
import os

import pytest
from pydantic import BaseModel, Field

URL = os.environ.get("LUTRA_URL", "http://127.0.0.1:8080")
MODEL = "lutra-tiny-l"
CONTEXT = 1024  # of the embedded models
EMBEDDER = "bert"
QUESTION = "A box holds 12 eggs. Ann buys 7 boxes. How many eggs does she have?"
USER = {"role": "user", "content": QUESTION}
SLOW = {"model": MODEL + "+beam16x4", "temperature": 0.8}  # a search: no answer comes within a few milliseconds
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
        return f"{os.environ['LUTRA_CLIENT']}-{next(self.keys)}"


@pytest.fixture
def guarded():
    if not Guarded.url:
        pytest.skip("LUTRA_GUARDED_URL names no server that wants keys")
    return Guarded()
