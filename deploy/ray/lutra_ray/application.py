"""How the two deployments are placed, scaled and stopped."""

from ray import serve
from ray.serve.config import AutoscalingConfig, AutoscalingPolicy, RequestRouterConfig

from .ingress import Ingress
from .router import BeginningRouter
from .scaling import QueuePolicy
from .server import Server
from .settings import Settings


def app(settings: Settings) -> serve.Application:
    """Builds the application."""
    servers = serve.deployment(
        ray_actor_options={"num_cpus": settings.threads},
        max_ongoing_requests=settings.max_ongoing,
        max_queued_requests=settings.max_queued,
        health_check_period_s=2,
        health_check_timeout_s=10,
        graceful_shutdown_wait_loop_s=0.2,
        graceful_shutdown_timeout_s=settings.drain_s,
        request_router_config=RequestRouterConfig(request_router_class=BeginningRouter),  # type: ignore[arg-type]
        autoscaling_config=AutoscalingConfig(
            min_replicas=settings.min_replicas,
            max_replicas=settings.max_replicas,
            upscale_delay_s=settings.upscale_delay_s,
            downscale_delay_s=settings.downscale_delay_s,
            look_back_period_s=15,  # Ray asks replicas every 10 s
            policy=AutoscalingPolicy(policy_function=QueuePolicy, policy_kwargs={"target": settings.target_sequences}),
        ),
    )(Server)
    # On the head node, as the proxy that clients reach: it ends with no other node.
    ingress = serve.deployment(
        num_replicas=1,
        ray_actor_options={"num_cpus": 0, "resources": {"node:__internal_head__": 0.001}},
        max_ongoing_requests=settings.max_queued + settings.max_replicas * settings.max_ongoing,
        graceful_shutdown_wait_loop_s=0.2,
        graceful_shutdown_timeout_s=settings.drain_s,
    )(Ingress)
    return ingress.bind(servers.bind(settings), settings.max_body)
