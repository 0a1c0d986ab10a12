"""A Ray Serve application: replicas that each run `lutra serve`, behind one address.

    client ──▶ Ray's proxy ──▶ Ingress ──▶ Server ──▶ lutra serve, on 127.0.0.1
               (head node)     (head node)  (any node, as many CPUs as threads)

Ingress holds a request until the first bytes of its answer have come and repeats it elsewhere
until then; Server owns the process. The two know nothing of models, prompts or tokens but where a
conversation begins, which `conversation` finds for `BeginningRouter`.
"""

from .application import app

__all__ = ["app"]
