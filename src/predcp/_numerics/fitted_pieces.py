"""Polynomials fitted to two functions on pieces of equal width."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

# The values of both functions, shape (2, ...), at points of shape (..., *batch).
Ask = Callable[[Any], np.ndarray]


def polynomials(
    ask: Ask, degree: int, low: np.ndarray, width: np.ndarray, pieces: np.ndarray
) -> np.ndarray:
    """Coefficients of the polynomial of each piece, shape (*batch, pieces, 2, degree + 1)."""
    nodes = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
    values = in_pieces(ask, low, width, pieces, np.append(nodes, 0.0))
    middle = values[:, :, -1]
    # Fit the differences from the middle, so that the large common part keeps its digits.
    inverse = np.linalg.inv(np.vander(nodes, increasing=True))
    coefficients = np.einsum("dn,vpn...->vpd...", inverse, values[:, :, :-1] - middle[:, :, None])
    coefficients[:, :, 0] += middle
    order = (*range(3, coefficients.ndim), 1, 0, 2)
    return coefficients.transpose(order)


def in_pieces(
    ask: Ask, low: np.ndarray, width: np.ndarray, pieces: np.ndarray, x: np.ndarray
) -> np.ndarray:
    """The functions at local coordinates x in [-1, 1] of some pieces, shape (2, pieces, x, *batch)."""
    place = (pieces[:, None] + 0.5 * (1.0 + x)).reshape(-1, *(1 for _ in low.shape))
    values = ask(low + width * place)
    return values.reshape(2, pieces.size, x.size, *low.shape)


def halved(coefficients: np.ndarray) -> np.ndarray:
    """The same polynomials on pieces half as wide, shape (*batch, 2 pieces, 2, degree + 1)."""
    count = coefficients.shape[-1]
    # x = (y - 1) / 2 in the left half of a piece and (y + 1) / 2 in the right half.
    moves = np.zeros((2, count, count))
    for power in range(count):
        for j in range(power + 1):
            size = math.comb(power, j) / 2.0**power
            moves[:, power, j] = size * (-1.0) ** (power - j), size
    halves = np.einsum("...pvk,hkj->...phvj", coefficients, moves)
    shape = coefficients.shape
    return halves.reshape(*shape[:-3], 2 * shape[-3], *shape[-2:])
