"""Ordinary second-order MAML in PyTorch, for comparison: a loop over tasks, or `torch.func` and vmap."""

import time
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F

from predcp.fewshot import ConvNet, Settings

Parameters = dict[str, torch.Tensor]


def measure_torch(
    kind: Literal["loop", "vmap"] | str,
    network: ConvNet,
    settings: Settings,
    images: np.ndarray,
    labels: np.ndarray,
    iterations: int,
) -> dict[str, Any]:
    """Milliseconds an iteration, after as many again to warm up."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    # Products as ours by default: TF32 where the device has it.
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    tasks = _Tasks(images, labels, settings, device)
    parameters = _start(network, images.shape[-1], device)
    optimiser = torch.optim.Adam(parameters.values(), lr=settings.outer_rate)
    loss_of = _loop_loss if kind == "loop" else _vmap_loss

    def iterate() -> None:
        support, query = tasks.sample()
        optimiser.zero_grad(set_to_none=True)
        loss = loss_of(parameters, network, settings, support, query)
        loss.backward()
        optimiser.step()

    def run(count: int) -> float:
        began = time.perf_counter()
        for _ in range(count):
            iterate()
        if device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - began

    first = run(iterations)
    times = [1e3 * run(iterations) / iterations for _ in range(3)]
    return {
        "milliseconds": min(times),
        "milliseconds_all": times,
        "tasks_a_second": 1e3 * settings.meta_batch / min(times),
        "first_call_seconds": first,
        "torch": torch.__version__,
        "device": str(device),
    }


class _Tasks:
    """Tasks drawn on the device from images that lie there."""

    def __init__(self, images: np.ndarray, labels: np.ndarray, settings: Settings, device: Any):
        self._images = torch.as_tensor(images).permute(0, 3, 1, 2).contiguous().to(device)
        counts = np.bincount(labels)
        self._classes, self._each = len(counts), int(counts.min())
        self._settings, self._device = settings, device

    def sample(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Support and query images, `(tasks, ways * each, channels, height, width)`."""
        settings = self._settings
        wanted = settings.shots + settings.queries
        marks = torch.rand(settings.meta_batch, self._classes, device=self._device)
        chosen = marks.topk(settings.ways, dim=1).indices
        marks = torch.rand(settings.meta_batch, settings.ways, self._each, device=self._device)
        rows = chosen[..., None] * self._each + marks.topk(wanted, dim=2).indices
        x = (self._images[rows].float() - 127.5) / 73.9
        support = x[:, :, : settings.shots].flatten(1, 2)
        return support, x[:, :, settings.shots :].flatten(1, 2)


def _start(network: ConvNet, channels: int, device: Any) -> Parameters:
    generator = torch.Generator().manual_seed(0)
    parameters: Parameters = {}
    for block in range(network.blocks):
        shape = (network.channels, channels, 3, 3)
        spread = (2.0 / (9 * channels)) ** 0.5
        parameters[f"weight{block}"] = torch.randn(shape, generator=generator) * spread
        parameters[f"bias{block}"] = torch.zeros(network.channels)
        parameters[f"scale{block}"] = torch.ones(network.channels)
        parameters[f"shift{block}"] = torch.zeros(network.channels)
        channels = network.channels
    shape = (network.ways, channels)
    parameters["head_weight"] = torch.randn(shape, generator=generator) * channels**-0.5
    parameters["head_bias"] = torch.zeros(network.ways)
    return {name: value.to(device).requires_grad_() for name, value in parameters.items()}


def _adapts(name: str) -> bool:
    return not name.startswith(("scale", "shift"))


def _logits(parameters: Parameters, network: ConvNet, x: torch.Tensor) -> torch.Tensor:
    for block in range(network.blocks):
        x = F.conv2d(
            x,
            parameters[f"weight{block}"],
            parameters[f"bias{block}"],
            stride=network.stride,
            padding=1,
        )
        x = F.batch_norm(
            F.relu(x),
            None,
            None,
            parameters[f"scale{block}"],
            parameters[f"shift{block}"],
            training=True,
        )
    return F.linear(x.mean((2, 3)), parameters["head_weight"], parameters["head_bias"])


def _classes(settings: Settings, each: int, device: Any) -> torch.Tensor:
    return torch.arange(settings.ways, device=device).repeat_interleave(each)


def _loop_loss(
    parameters: Parameters,
    network: ConvNet,
    settings: Settings,
    support: torch.Tensor,
    query: torch.Tensor,
) -> torch.Tensor:
    known = _classes(settings, settings.shots, support.device)
    asked = _classes(settings, settings.queries, support.device)
    names = [name for name in parameters if _adapts(name)]
    losses = []
    for x, x_query in zip(support, query):
        own = dict(parameters)
        for _ in range(settings.inner_steps):
            loss = F.cross_entropy(_logits(own, network, x), known)
            slopes = torch.autograd.grad(loss, [own[name] for name in names], create_graph=True)
            own |= {
                name: own[name] - settings.inner_rate * slope for name, slope in zip(names, slopes)
            }
        losses.append(F.cross_entropy(_logits(own, network, x_query), asked))
    return torch.stack(losses).mean()


def _vmap_loss(
    parameters: Parameters,
    network: ConvNet,
    settings: Settings,
    support: torch.Tensor,
    query: torch.Tensor,
) -> torch.Tensor:
    known = _classes(settings, settings.shots, support.device)
    asked = _classes(settings, settings.queries, support.device)
    fixed = {name: value for name, value in parameters.items() if not _adapts(name)}

    def support_loss(own: Parameters, x: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(_logits(own | fixed, network, x), known)

    def task_loss(x: torch.Tensor, x_query: torch.Tensor) -> torch.Tensor:
        own = {name: value for name, value in parameters.items() if _adapts(name)}
        for _ in range(settings.inner_steps):
            slopes = torch.func.grad(support_loss)(own, x)
            own = {name: value - settings.inner_rate * slopes[name] for name, value in own.items()}
        return F.cross_entropy(_logits(own | fixed, network, x_query), asked)

    return torch.func.vmap(task_loss)(support, query).mean()
