"""What a user sets, as `serve run lutra_ray:app NAME=VALUE...` or as `args` of a Serve config."""

import shlex

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    binary: str = "lutra"  # on every node's PATH, or a path there
    arguments: str = ""  # of lutra serve, as a shell would read them: --model bonsai-1.7b
    threads: int = Field(default=1, ge=1)  # of each server, and the CPUs that Ray counts for it
    min_replicas: int = Field(default=1, ge=1)
    max_replicas: int = Field(default=8, ge=1)
    target_sequences: float = Field(default=8, gt=0)  # running and waiting, that each replica is to have
    upscale_delay_s: float = Field(default=10, ge=0)
    downscale_delay_s: float = Field(default=300, ge=0)
    max_ongoing: int = Field(default=64, ge=1)  # requests that a server has at once; others wait
    max_queued: int = Field(default=1000, ge=1)  # requests that wait; others are refused with 503
    max_body: int = Field(default=8 << 20, ge=1)  # bytes; as server.max_body
    drain_s: float = Field(default=630, gt=0)  # for running requests to end; a little over server.request_timeout

    @model_validator(mode="after")
    def check(self) -> "Settings":
        if self.max_replicas < self.min_replicas:
            raise ValueError(f"max_replicas {self.max_replicas} is less than min_replicas {self.min_replicas}")
        for flag in ("--addr", "--threads"):
            if any(word.split("=")[0] == flag for word in shlex.split(self.arguments)):
                raise ValueError(f"arguments: {flag} is set here")
        return self

    def command(self) -> list[str]:
        """The command line of a replica's server, on a free port of 127.0.0.1."""
        return [
            self.binary,
            "serve",
            "--addr",
            "127.0.0.1:0",
            "--threads",
            str(self.threads),
            *shlex.split(self.arguments),
        ]
