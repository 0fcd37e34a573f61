"""The arithmetic of a transformer on numbers small enough to follow by hand.

Plain Python, no tensors: every function is a formula of the forward pass, and every example is run as a test. The
cells in `forward/cells/` compute the same on tensors, which the tests hold against these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Vector = Sequence[float]
Matrix = Sequence[Vector]


def dot(a: Vector, b: Vector) -> float:
    """Sum of products, entry by entry.

    >>> dot([1, 2, 3], [1, 0, 1])
    4
    """
    return sum(x * y for x, y in zip(a, b, strict=True))


def matmul(a: Matrix, b: Matrix) -> list[list[float]]:
    """(m, k) times (k, n) is (m, n): each entry is the dot product of a row of `a` and a column of `b`.

    >>> matmul([[1, 2, 3], [4, 5, 6]], [[1, 0], [0, 1], [1, 1]])
    [[4, 5], [10, 11]]
    """
    return [[dot(row, column) for column in zip(*b, strict=True)] for row in a]


def matmul_operations(m: int, k: int, n: int) -> int:
    """A product and a sum for each of k terms of each of m n entries.

    >>> matmul_operations(2, 3, 2)
    24
    """
    return 2 * m * k * n


def naive_softmax(logits: Vector) -> list[float]:
    """Softmax as it is defined. It cannot be computed where an exponential has no float.

    >>> [round(p, 6) for p in naive_softmax([0, 1, 2])]
    [0.090031, 0.244728, 0.665241]
    >>> naive_softmax([1000, 1001, 1002])
    Traceback (most recent call last):
    OverflowError: math range error
    """
    exponentials = [math.exp(x) for x in logits]
    return [e / sum(exponentials) for e in exponentials]


def shifted(logits: Vector) -> list[float]:
    """Logits minus the largest of them. Softmax sees differences alone, so it does not change.

    >>> shifted([1000, 1001, 1002])
    [-2, -1, 0]
    """
    return [x - max(logits) for x in logits]


def softmax(logits: Vector) -> list[float]:
    """Softmax of the shifted logits: no exponential is larger than 1. `-inf` gets nothing.

    >>> [round(p, 6) for p in softmax([1000, 1001, 1002])]
    [0.090031, 0.244728, 0.665241]
    >>> softmax([1.0, -math.inf])
    [1.0, 0.0]
    """
    return naive_softmax(shifted(logits))


def causal_weights(q: Matrix, k: Matrix) -> list[list[float]]:
    """Attention weights: row i is the softmax of q_i . k_j / sqrt(width) over the positions j up to i.

    >>> rows = causal_weights([[1, 0], [1, 1], [2, 1]], [[1, 0], [0, 1], [1, 1]])
    >>> [[round(w, 6) for w in row] for row in rows]
    [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.283995, 0.140029, 0.575975]]
    """
    width = len(k[0])
    scores = [
        [dot(query, key) / math.sqrt(width) if j <= i else -math.inf for j, key in enumerate(k)]
        for i, query in enumerate(q)
    ]
    return [softmax(row) for row in scores]


def causal_attention(x: Matrix, wq: Matrix, wk: Matrix, wv: Matrix) -> list[list[float]]:
    """One head: each position's weighted mean of the values up to it. Weights are (in, out) here.

    >>> x, wq, wk, wv = [[1, 0], [0, 1], [1, 1]], [[1, 0], [1, 1]], [[1, 0], [0, 1]], [[1, 2], [2, -1]]
    >>> matmul(x, wq), matmul(x, wv)
    ([[1, 0], [1, 1], [2, 1]], [[1, 2], [2, -1], [3, 1]])
    >>> [[round(y, 6) for y in row] for row in causal_attention(x, wq, wk, wv)]
    [[1.0, 2.0], [1.5, 0.5], [2.29198, 1.003937]]
    """
    return matmul(causal_weights(matmul(x, wq), matmul(x, wk)), matmul(x, wv))


def layer_norm(row: Vector, eps: float, scale: float = 1.0, offset: float = 0.0) -> list[float]:
    """Minus the mean, divided by the root of the mean squared deviation (over n, not n - 1) plus eps.

    >>> [round(y, 6) for y in layer_norm([1, 2, 3], eps=1e-5)]
    [-1.224736, 0.0, 1.224736]
    """
    mean, deviation = mean_and_deviation(row)
    return [scale * (x - mean) / math.sqrt(deviation + eps) + offset for x in row]


def mean_and_deviation(row: Vector) -> tuple[float, float]:
    """The mean, and the mean squared deviation from it.

    >>> mean_and_deviation([1, 2, 3])
    (2.0, 0.6666666666666666)
    """
    mean = sum(row) / len(row)
    return mean, sum((x - mean) ** 2 for x in row) / len(row)


def gelu(x: float) -> float:
    """GELU in its tanh form.

    >>> [round(gelu(x), 4) for x in (-3, -1, 0, 1, 3)]
    [-0.0036, -0.1588, 0.0, 0.8412, 2.9964]
    """
    return 0.5 * x * gelu_factor(x)


def gelu_factor(x: float) -> float:
    """What half of x is multiplied by: nearly 0 far below zero, nearly 2 far above.

    >>> gelu_factor(-20), gelu_factor(20)
    (0.0, 2.0)
    """
    return 1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


def negative_log_likelihood(probability: float) -> float:
    """In nats. That of a sequence is the sum over its tokens, because probabilities multiply.

    >>> round(negative_log_likelihood(0.5), 6)
    0.693147
    >>> both = negative_log_likelihood(0.5) + negative_log_likelihood(0.25)
    >>> math.isclose(both, negative_log_likelihood(0.5 * 0.25))
    True
    """
    return -math.log(probability)


def cross_entropy(target: Vector, nll: Vector) -> float:
    """The target's probabilities times the negative log probabilities. A one-hot target picks one of them.

    >>> cross_entropy([0, 0, 1, 0], [1.2, 0.4, 2.7, 3.1])
    2.7
    """
    return dot(target, nll)


def entropy_bits(probabilities: Vector) -> float:
    """Mean number of bits that a draw tells.

    >>> entropy_bits([0.5, 0.5])
    1.0
    """
    return -sum(p * math.log2(p) for p in probabilities if p > 0)


def odds(logits: Vector, one: int, other: int) -> float:
    """How many times more probable one token is than another: the exponential of the difference of their logits.

    Adding to all logits changes nothing; doubling them squares the odds; dividing by a temperature takes the root.

    >>> round(odds([1.0, 0.0], 0, 1), 6)
    2.718282
    >>> math.isclose(odds([102.0, 100.0], 0, 1), odds([1.0, 0.0], 0, 1) ** 2)
    True
    """
    return math.exp(logits[one] - logits[other])


def training_pairs(ids: Sequence[int]) -> list[tuple[list[int], int]]:
    """What a text asks of a model: after each beginning, the token that follows.

    >>> training_pairs([41, 82, 17, 63])
    [([41], 82), ([41, 82], 17), ([41, 82, 17], 63)]
    """
    return [(list(ids[:end]), ids[end]) for end in range(1, len(ids))]


def add(a: Vector, b: Vector) -> list[float]:
    """A residual connection: what a sub-layer computes is added to what it was given.

    >>> add([1, 2, 3], [0.25, -0.5, 1])
    [1.25, 1.5, 4]
    """
    return [x + y for x, y in zip(a, b, strict=True)]


def dollars_per_million_tokens(price_per_hour: float, tokens_per_second: float, occupancy: float = 1.0) -> float:
    """What a million tokens cost on a machine that is paid by the hour and busy for a share of it.

    >>> round(dollars_per_million_tokens(3.60, 100.0), 6)
    10.0
    >>> round(dollars_per_million_tokens(3.60, 100.0, occupancy=0.5), 6)
    20.0
    """
    return price_per_hour * 1e6 / (3600 * tokens_per_second * occupancy)


def percent_change(before: float, after: float) -> float:
    """
    >>> percent_change(8.0, 12.0)
    50.0
    """
    return 100 * (after / before - 1)
