"""Which replica gets a request."""

import hashlib
import math
import random

from ray.serve.request_router import PendingRequest, RequestRouter, RunningReplica

from .message import Ask


class BeginningRouter(RequestRouter):
    """Sends what begins alike to one replica, whose cache has computed that beginning, unless it
    has `slack` times the average to do already: rendezvous hashing with a bound, which needs no
    memory and moves few conversations when replicas come and go. What has no beginning goes to
    the replica with the least to do. Replicas that have failed a request come last for it."""

    def initialize_state(self, slack: float = 1.5) -> None:  # type: ignore[override]  # of request_router_kwargs
        self._slack = slack

    async def choose_replicas(
        self, candidate_replicas: list[RunningReplica], pending_request: PendingRequest | None = None
    ) -> list[list[RunningReplica]]:
        if pending_request is None or not candidate_replicas:
            return [candidate_replicas]
        ask: Ask = pending_request.args[0]
        busy = {r.replica_id: self.replica_queue_len_cache.get(r.replica_id) or 0 for r in candidate_replicas}
        bound = math.ceil(self._slack * (sum(busy.values()) + 1) / len(busy))

        def rank(r: RunningReplica) -> tuple[bool, bool, float]:
            name = r.replica_id.unique_id
            if ask.key is None:
                order: float = busy[r.replica_id] + random.random()
            else:
                order = int.from_bytes(hashlib.blake2b(ask.key + name.encode(), digest_size=6).digest())
            return name in ask.avoid, ask.key is not None and busy[r.replica_id] >= bound, order

        return [[r] for r in sorted(candidate_replicas, key=rank)]
