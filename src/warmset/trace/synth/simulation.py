"""Simulated time: processes that wait, and lanes that only so many may use at once.

A process is a Python generator. It yields the time in ms at which it goes on, or a `Lane` it needs; it goes
on once it is its turn, and gives a lane back with `release`.
"""

import heapq
from collections import deque
from collections.abc import Generator

Process = Generator["int | Lane", None, None]


class Lane:
    """Places that processes take and give back; who waits longest is next."""

    __slots__ = ("num_free", "waiting")

    def __init__(self, num_places: int) -> None:
        self.num_free = num_places
        self.waiting: deque[Process] = deque()


class Simulation:
    """A clock and the processes that wait for it; ties go in the order in which they began to wait."""

    def __init__(self) -> None:
        self.now_ms = 0
        self._queue: list[tuple[int, int, Process]] = []
        self._order = 0

    def start(self, process: Process, at_ms: int) -> None:
        """Let a process go on at this time."""
        self._order += 1
        heapq.heappush(self._queue, (at_ms, self._order, process))

    def release(self, lane: Lane) -> None:
        """Give a place back, to whoever waits for it."""
        if lane.waiting:
            self.start(lane.waiting.popleft(), self.now_ms)
        else:
            lane.num_free += 1

    def step(self) -> bool:
        """Let the next process go on until it waits again; whether there was one."""
        if not self._queue:
            return False
        self.now_ms, _, process = heapq.heappop(self._queue)
        for wanted in process:
            if isinstance(wanted, int):
                self.start(process, wanted)
                break
            if not wanted.num_free:
                wanted.waiting.append(process)
                break
            wanted.num_free -= 1
        return True

    @property
    def next_ms(self) -> int | None:
        """When the next process goes on."""
        return self._queue[0][0] if self._queue else None
