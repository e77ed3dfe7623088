"""The clusters of the command that started the page, by what it says: a `Source` of the page."""

# check: reads facts because what a command sends to the page of its cluster is not a record

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from lastcall.endings import Ending, PodFacts, build_endings
from lastcall.kube.client import ClientConfig, Impersonation, Overrides, client_for, load_kubeconfig
from lastcall.kube.cluster import read_record
from lastcall.records.record import Record
from lastcall.records.said import from_wire
from lastcall.ui.command_page.messages import SHOWN, Cluster, Seen, Story
from lastcall.ui.source import NoMore, ObjectHandler, Opened


class FedClusters:
    """`open` waits for the next one, and raises NoMore after `bye`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._clusters: asyncio.Queue[tuple[Cluster, asyncio.Queue[list[Record] | None]] | None] = asyncio.Queue()
        self._records: asyncio.Queue[list[Record] | None] | None = None
        self._number = 0
        self._stories: dict[str, Ending] = {}
        self._on_object: ObjectHandler | None = None
        self._before: list[Seen] = []
        self._version = ""

    def cluster(self, cluster: Cluster) -> None:
        """Take a cluster that runs; another one that did has ended."""
        self.over()
        self._stories, self._on_object, self._before = {}, None, []
        self._version = str(cluster.facts["kubernetesVersion"])
        self._records = asyncio.Queue()
        self._clusters.put_nowait((cluster, self._records))

    def records(self, messages: list[dict[str, Any]]) -> list[Record]:
        """Take more of its records, and return them."""
        records = [read_record({"record": each}) for each in messages]
        if self._records is not None:
            self._records.put_nowait(records)
        return records

    def seen(self, seen: Seen) -> None:
        """Take an object of an existing cluster."""
        if self._on_object is None:
            self._before.append(seen)
        else:
            self._on_object(SHOWN[seen.resource], seen.type, seen.obj)

    def story(self, story: Story) -> Ending:
        """Build a story of an existing cluster from the records that it was made of there."""
        records = [read_record({"record": each}) for each in story.records]
        facts = PodFacts(story.uid, "", "")
        ending = build_endings(records, [facts], kubernetes_version=self._version)[0]
        self._stories[story.uid] = ending = replace(ending, not_known=tuple(map(from_wire, story.not_known)))
        return ending

    def over(self) -> None:
        """End the cluster's records: it has ended."""
        if self._records is not None:
            self._records.put_nowait(None)
            self._records = None

    def bye(self) -> None:
        """End: no cluster comes any more."""
        self.over()
        self._clusters.put_nowait(None)

    async def open(self) -> Opened:
        found = await self._clusters.get()
        if found is None:
            raise NoMore
        cluster, records = found
        self._number += 1
        config = await asyncio.get_running_loop().run_in_executor(None, _config_of, cluster)
        client = client_for(config, user_agent="lastcall-ui")
        opened = Opened(dict(cluster.facts), str(self._number), client, _each(records))
        if cluster.asked is not None:
            opened.may_write, opened.watch, opened.ending = False, self._watch, self._stories.get
        return opened

    def _watch(self, on_object: ObjectHandler) -> None:
        self._on_object = on_object
        before, self._before = self._before, []
        for each in before:
            self.seen(each)


def _config_of(cluster: Cluster) -> ClientConfig:
    asked = cluster.asked
    if asked is None:
        return load_kubeconfig(str(cluster.facts["kubeconfig"]))
    who = Impersonation(**asked["impersonate"])
    overrides = Overrides(asked["context"], asked["namespace"], who, asked["insecure_skip_tls_verify"])
    return load_kubeconfig(asked["kubeconfig"], overrides=overrides)


async def _each(records: "asyncio.Queue[list[Record] | None]") -> AsyncIterator[Record]:
    while (those := await records.get()) is not None:
        for record in those:
            yield record
