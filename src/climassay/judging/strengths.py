"""Strengths of items from comparisons that were made anyway: better than trusting the order of a merge.

A merge uses every comparison once and then forgets it. Comparisons are noisy, and a log-odds says more than its sign:
fitting one strength an item to all of them averages the noise out.
"""

import numpy as np
from numpy.typing import NDArray

RIDGE = 0.01
"""Penalty in units of one comparison: decides nothing but the zero point where the comparisons connect all items."""


def fitted_strengths(n: int, pairs: NDArray[np.int64], log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Strengths whose differences fit the log-odds best, in the sense of least squares.

    With all pairs given this is, but for a factor, an item's mean log-odds against the others (Borda's count on
    log-odds); with some of the pairs it takes into account whom an item was compared with.

    Args:
        n: Number of items.
        pairs: Item indices, shape [pairs, 2].
        log_odds: Natural log-odds that the first is better, shape [pairs].

    Returns:
        Strengths in nats, shape [n], mean 0 over connected items; an item never compared has 0.

    References:
        Thurstone's and Bradley-Terry's models in the form of least squares: Mosteller (1951), Psychometrika 16, 3-9.
    """
    from scipy.sparse import csr_matrix, identity
    from scipy.sparse.linalg import spsolve

    if n == 0:
        return np.zeros(0)
    count = len(pairs)
    rows = np.repeat(np.arange(count), 2)
    signs = np.tile([1.0, -1.0], count)
    design = csr_matrix((signs, (rows, pairs.ravel())), shape=(count, n))
    normal = (design.T @ design + RIDGE * identity(n)).tocsc()
    return np.asarray(spsolve(normal, design.T @ log_odds), dtype=np.float64).reshape(n)
