"""A Ray cluster of several nodes on this machine, for tests. Its parts find each other on loopback;
some of Ray's ports listen on all addresses, which it cannot be told otherwise."""

import logging
import os
import pathlib
import time
from collections.abc import Callable

os.environ |= {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_SERVE_REPLICA_AUTOSCALING_METRIC_PUSH_INTERVAL_S": "1",  # not 10
    "RAY_raylet_start_wait_time_s": "120",  # on a busy machine
}

import ray
from ray import serve
from ray._private.node import Node
from ray.cluster_utils import Cluster
from ray.serve._private.common import ReplicaState
from ray.serve.config import HTTPOptions

HERE = str(pathlib.Path(__file__).parent)
ADDRESS = "127.0.0.2"  # Ray replaces 127.0.0.1 by an address that others reach
PORT = 8123
BASE = f"http://127.0.0.1:{PORT}"
APP = "lutra"


class Nodes:
    """A head that runs no server, and nodes of one CPU each."""

    def __init__(self, count: int) -> None:
        self.cluster = Cluster(
            initialize_head=True,
            head_node_args={
                "num_cpus": 0,
                "node_ip_address": ADDRESS,
                "include_dashboard": False,
                "object_store_memory": 80 << 20,
            },
        )
        self.workers = [self.add() for _ in range(count)]
        ray.init(
            address=self.cluster.address,
            _node_ip_address=ADDRESS,
            runtime_env={"env_vars": {"PYTHONPATH": HERE}},
            log_to_driver=bool(os.environ.get("RAY_TEST_LOG")),
            logging_level=logging.ERROR,
        )
        serve.start(proxy_location="HeadOnly", http_options=HTTPOptions(host="127.0.0.1", port=PORT))

    def add(self) -> Node:
        return self.cluster.add_node(num_cpus=1, node_ip_address=ADDRESS, object_store_memory=80 << 20)

    def kill(self) -> None:
        """Ends a node as a loss of power does."""
        self.cluster.remove_node(self.workers.pop(), allow_graceful=False)

    def stop(self) -> None:
        serve.shutdown()
        ray.shutdown()
        self.cluster.shutdown()


def until(what: str, holds: Callable[[], bool], seconds: float = 120) -> None:
    """Waits for a condition, and fails where it does not come true."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {what}\n{serve.status()}")
        time.sleep(0.1)


def replicas(state: ReplicaState = ReplicaState.RUNNING) -> int:
    """How many servers there are in a state."""
    return serve.status().applications[APP].deployments["Server"].replica_states.get(state, 0)


def processes(word: str) -> list[int]:
    """The processes with a word in their command lines."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and word.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:  # it has ended
            pass
    return found
