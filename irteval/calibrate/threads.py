"""Threads: one for each block of cells, never several inside an operation.

Small tensors on two threads can be many times slower than on one, and a sum that several threads share
depends on how many they are. So every tensor operation of a fit runs on one thread, and a large fit hands
whole blocks to workers whose results are added in the order of the blocks: the numbers don't depend on how
many there are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Protocol, TypeVar

import torch

SMALL = 1_000_000  # cells; below, starting workers costs more than it saves

Result = TypeVar("Result")


class BlockMap(Protocol):
    """``map`` over the numbers of blocks, results in their order."""

    def __call__(self, function: Callable[[int], Result], numbers: Iterable[int], /) -> Iterator[Result]:
        """One result a block."""
        ...


def _in_order(
    pool: ThreadPoolExecutor, ahead: int, function: Callable[[int], Result], numbers: Iterable[int]
) -> Iterator[Result]:
    """``pool.map`` that runs at most so many blocks ahead: all results together would fill the memory."""
    waiting: deque[Future[Result]] = deque()
    for number in numbers:
        waiting.append(pool.submit(function, number))
        if len(waiting) >= ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


@contextmanager
def threads_for(cells: int) -> Iterator[None]:
    """One thread for operations on arrays of fewer than a million cells; as many as torch was given above."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if cells < SMALL else threads)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def block_map(cells: int, device: torch.device) -> Iterator[BlockMap]:
    """A ``map`` over blocks that keeps their order, with as many workers as torch was given threads.

    On a GPU, and below a million cells, it is the ordinary ``map``. torch's number of threads is 1 inside
    and as it was afterwards.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        if device.type != "cpu" or cells < SMALL or threads == 1:
            yield map
        else:
            with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
                yield partial(_in_order, pool, 2 * threads)
    finally:
        torch.set_num_threads(threads)
