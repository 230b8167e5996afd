"""Where JAX may be called: not in a forked process, where it hangs."""

import os

# A new process imports this file, a forked one does not.
_PROCESS = os.getpid()


def require_no_fork(what: str) -> None:
    """Say how to sample instead, in a forked process. **Arguments**: `what` calls JAX."""
    if os.getpid() != _PROCESS:
        raise RuntimeError(
            f"{what} calls JAX, which cannot run in a forked process: sample with cores=1, "
            "mp_ctx='spawn', or (pm.sample) nuts_sampler='nutpie' or 'numpyro'"
        )
