"""Messages between a driver and its workers: a JSON header and raw bytes."""

import json
from dataclasses import asdict
from typing import IO, Any

from predcp._support import workers
from predcp.experiments._result import Outcome


def write_message(stream: IO[bytes], header: dict[str, Any], payload: bytes = b"") -> None:
    """Write a JSON header and raw bytes."""
    workers.write_message(stream, json.dumps(header).encode(), payload)


def read_message(stream: IO[bytes]) -> tuple[dict[str, Any], bytes] | None:
    """The next message, or None if the other side has ended."""
    header = workers.read_part(stream)
    payload = None if header is None else workers.read_part(stream)
    if header is None or payload is None:
        return None
    return json.loads(header), payload


def outcome_message(outcome: Outcome) -> tuple[dict[str, Any], bytes]:
    """An outcome as a header and the posterior's bytes."""
    header = asdict(outcome)
    payload = header.pop("posterior")
    header["has_posterior"] = payload is not None
    return header, payload or b""


def message_outcome(header: dict[str, Any], payload: bytes) -> Outcome:
    """The inverse of `outcome_message`."""
    header = dict(header)
    has_posterior = header.pop("has_posterior")
    header["metrics"] = tuple((part, metric, value) for part, metric, value in header["metrics"])
    return Outcome(**header, posterior=payload if has_posterior else None)
