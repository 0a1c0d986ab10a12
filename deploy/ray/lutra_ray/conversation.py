"""Where a conversation begins, so that its turns find a server that has computed them."""

import hashlib
import json
from typing import Any


def key(body: bytes) -> bytes | None:
    """The hash of what a request begins with, which its later turns begin with too: the first
    message, and the next if the first is the system's, which all may share; the prompt or input
    of APIs without messages. None: the body says no such thing."""
    try:
        asked = json.loads(body)
        begins = _beginning(asked) if isinstance(asked, dict) else None
        if not begins:
            return None
        return hashlib.blake2b(json.dumps(begins, sort_keys=True).encode(), digest_size=8).digest()
    except (ValueError, RecursionError):  # the server says what is wrong with it
        return None


def _beginning(asked: dict[str, Any]) -> list[Any]:
    messages = asked.get("messages") or asked.get("input") or asked.get("prompt")
    if not isinstance(messages, list):
        messages = [messages] if messages else []
    first = messages[0] if messages else None
    system = isinstance(first, dict) and first.get("role") in ("system", "developer")
    return (
        [asked.get("model"), asked.get("system"), asked.get("instructions"), *messages[: 2 if system else 1]]
        if messages
        else []
    )
