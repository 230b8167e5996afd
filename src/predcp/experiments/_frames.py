"""Messages between a driver and its workers: lengths and bytes on a pipe, JSON inside."""

import json
import struct
from dataclasses import asdict
from typing import IO, Any

from predcp.experiments._result import Outcome

_LENGTHS = struct.Struct("<II")


def write_message(stream: IO[bytes], header: dict[str, Any], payload: bytes = b"") -> None:
    """A JSON header and raw bytes."""
    text = json.dumps(header).encode()
    stream.write(_LENGTHS.pack(len(text), len(payload)) + text + payload)
    stream.flush()


def read_message(stream: IO[bytes]) -> tuple[dict[str, Any], bytes] | None:
    """The next message, or None when the other side is gone."""
    lengths = stream.read(_LENGTHS.size)
    if len(lengths) < _LENGTHS.size:
        return None
    header_length, payload_length = _LENGTHS.unpack(lengths)
    header, payload = stream.read(header_length), stream.read(payload_length)
    if len(header) < header_length or len(payload) < payload_length:
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
