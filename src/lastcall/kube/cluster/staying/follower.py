"""Serve a follower of the records of a staying cluster: keep what has come and is not yet given."""

import asyncio
from collections import deque

from lastcall.kube.cluster.errors import ControlError
from lastcall.records.record import Record

FOLLOWED_RECORDS = 20_000
"""A follower that is so many behind gets the message that it is too slow."""


class Follower:
    """The records that a follower has not yet been given; of all Pods for ""."""

    def __init__(self, pod_uid: str) -> None:
        self._pod_uid = pod_uid
        self._waiting: deque[Record] = deque()
        self._there = asyncio.Event()
        self._too_slow = False

    def offer(self, record: Record) -> None:
        if self._pod_uid not in ("", record.pod_uid):
            return
        if len(self._waiting) >= FOLLOWED_RECORDS:
            self._too_slow = True
        else:
            self._waiting.append(record)
        self._there.set()

    async def next(self) -> Record:
        while not self._waiting:
            if self._too_slow:
                raise ControlError(f"this follower was more than {FOLLOWED_RECORDS} records behind: ask again")
            self._there.clear()
            await self._there.wait()
        return self._waiting.popleft()
