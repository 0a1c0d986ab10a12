"""What Ingress and Server tell each other."""

from dataclasses import dataclass

Headers = list[tuple[bytes, bytes]]

# Headers that concern one connection, and those that each connection sets itself.
HOP_BY_HOP = frozenset(
    [
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    ]
)


def end_to_end(headers: Headers, *others: bytes) -> Headers:
    """The headers that a proxy passes on, without others, and without what Connection names."""
    named = {n.strip().lower() for k, v in headers if k.lower() == b"connection" for n in v.split(b",")}
    return [(k, v) for k, v in headers if k.lower() not in HOP_BY_HOP | named | {*others}]


@dataclass(frozen=True)
class Ask:
    """A request: target is path and query as they came; key is of a conversation's beginning, if
    it has one; avoid are the replicas, by unique id, that have given no answer to it."""

    method: str
    target: str
    headers: Headers
    body: bytes
    key: bytes | None = None
    avoid: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Head:
    """An answer's beginning, which replica gives."""

    replica: str
    status: int
    headers: Headers


class Unanswered(Exception):
    """The server of a replica could not be asked, or broke off before its answer began."""

    def __init__(self, replica: str, why: str) -> None:
        super().__init__(replica, why)
        self.replica = replica
