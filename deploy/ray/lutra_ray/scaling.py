"""How many replicas there are to be. Ray's controller gets this file alone."""

import math
from typing import Any

from ray.serve.config import AutoscalingContext


class QueuePolicy:
    """Asks for a replica for each `target` sequences that the servers run or have waiting, and
    requests that have no server yet."""

    def __init__(self, target: float) -> None:
        self._target = target

    def __call__(self, ctx: AutoscalingContext) -> tuple[int, dict[str, Any]]:
        sequences = (ctx.aggregated_metrics or {}).get("sequences", {})
        demand = sum(sequences.values()) + (ctx.total_queued_requests or 0)
        return math.ceil(demand / self._target), {}
