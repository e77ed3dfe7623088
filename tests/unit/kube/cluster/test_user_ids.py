import itertools
import os
import pwd
import stat

import pytest

from lastcall.kube.cluster import user_ids
from lastcall.kube.cluster.user_ids import (
    BLOCKS,
    PODS_PER_BLOCK,
    REGION,
    UserIDBlocks,
    claim_blocks,
    subordinate_blocks,
)
from lastcall.kube.node.pods.user_ids import IDS_PER_POD

as_root = pytest.mark.skipif(os.getuid() != 0, reason="an ordinary user has no region")
BLOCK = PODS_PER_BLOCK * IDS_PER_POD


@pytest.fixture(autouse=True)
def locks(tmp_path, monkeypatch):
    """The directory of this test's locks."""
    monkeypatch.setattr(user_ids, "LOCK_DIRECTORY", str(tmp_path / "locks"))
    return tmp_path / "locks"


@pytest.fixture
def claimed():
    """The claims of a test, given back after it."""
    claims: list[UserIDBlocks] = []
    yield claims
    for claim in claims:
        claim.release()


def ids(claim: UserIDBlocks, nodes: int = 1) -> list[range]:
    return [
        range(own.first, own.first + own.pods * IDS_PER_POD)
        for own in (claim.of_node(number, nodes) for number in range(1, nodes + 1))
    ]


@as_root
def test_clusters_of_one_machine_have_different_ids(claimed):
    claimed += [claim_blocks(1, 110), claim_blocks(1, 110)]
    first, second = ids(claimed[0])[0], ids(claimed[1])[0]
    assert first.stop <= second.start or second.stop <= first.start
    assert all(each.start >= REGION.start and each.stop <= REGION.stop for each in (first, second))
    assert all(len(each) >= 128 * IDS_PER_POD for each in (first, second))


@as_root
def test_nodes_of_a_cluster_have_different_ids(claimed):
    claimed.append(claim_blocks(3, 110))
    ranges = ids(claimed[0], 3)
    assert [ranges[0].stop, ranges[1].stop] == [ranges[1].start, ranges[2].start]
    assert all(claimed[0].of_node(number, 3).by_default for number in (1, 2, 3))


@as_root
def test_many_nodes_share_the_whole_region(claimed):
    claimed.append(claim_blocks(64, 110))
    ranges = ids(claimed[0], 64)
    assert ranges[-1].stop <= REGION.stop
    assert all(one.stop == other.start for one, other in itertools.pairwise(ranges))


@as_root
def test_a_claim_that_was_given_back_can_be_had_again(claimed):
    before = claim_blocks(1, 110)
    before.release()
    claimed.append(claim_blocks(1, 110))
    assert claimed[0].first == before.first


@as_root
def test_where_every_block_is_claimed_one_is_shared(claimed):
    claimed += [claim_blocks(1, 110) for _ in range(BLOCKS)]
    claimed.append(claim_blocks(1, 110))
    assert claimed[-1].locks == []
    assert claimed[-1].pods == PODS_PER_BLOCK


@as_root
def test_only_root_can_open_what_is_locked(claimed, locks):
    claimed.append(claim_blocks(1, 110))
    assert stat.S_IMODE(locks.stat().st_mode) == 0o700
    assert [(each.name, stat.S_IMODE(each.stat().st_mode)) for each in locks.iterdir()] == [("user-ids", 0o600)]


@as_root
@pytest.mark.parametrize("kind", ["of somebody else", "a link", "a file"])
def test_locks_in_a_directory_that_others_can_write_are_not_trusted(claimed, locks, kind):
    if kind == "a link":
        locks.symlink_to("/tmp")
    elif kind == "a file":
        locks.write_text("")
    else:
        locks.mkdir(mode=0o777)
        os.chown(locks, 65534, 65534)
    claimed.append(claim_blocks(1, 110))
    assert claimed[0].locks == []
    assert claimed[0].pods == PODS_PER_BLOCK, "a block is shared, as where all are claimed"


@as_root
def test_a_claim_lasts_as_long_as_any_process_has_it(claimed):
    first = claim_blocks(1, 110)
    inherited = os.dup(first.locks[0])  # as a fork has it
    os.close(first.locks.pop())  # front is killed
    claimed.append(claim_blocks(1, 110))
    assert claimed[0].first != first.first
    os.close(inherited)
    claimed.append(claim_blocks(1, 110))
    assert claimed[1].first == first.first


@as_root
def test_the_last_claim_takes_the_file_and_its_directory_away(locks):
    one, other = claim_blocks(1, 110), claim_blocks(1, 110)
    one.release()
    assert locks.exists()
    third = claim_blocks(1, 110)
    assert third.first == one.first
    other.release()
    assert locks.exists()
    third.release()
    assert not locks.exists()
    third.release()  # again does nothing


@as_root
def test_a_lock_of_a_file_that_was_just_removed_does_not_count(claimed, locks, monkeypatch):
    opened = os.open
    removed = []

    def open_then_lose(path, *arguments, **more):
        fd = opened(path, *arguments, **more)
        if path == "user-ids" and not removed:
            removed.append(fd)
            (locks / "user-ids").unlink()
            locks.rmdir()
        return fd

    monkeypatch.setattr(os, "open", open_then_lose)
    claimed += [claim_blocks(1, 110), claim_blocks(1, 110)]
    assert removed
    assert claimed[0].first != claimed[1].first


def test_ids_that_subuid_gives_to_somebody_are_left_alone(tmp_path, monkeypatch):
    path = tmp_path / "subuid"
    start = REGION.start + BLOCK
    path.write_text(f"me:100000:65536\nyou:{start + 5}:1\nall:{REGION.start + 4 * BLOCK - 1}:2\nbroken\nx:y:z\n")
    assert subordinate_blocks(str(path)) == {1, 3, 4}
    assert subordinate_blocks(str(tmp_path / "none")) == set()


def test_an_ordinary_user_has_what_subuid_gave_beyond_the_first_range(tmp_path, monkeypatch):
    maps = {"0 1000 1\n1 100000 65536\n": 0, "0 1000 1\n1 100000 131072\n": 1, "0 1000 1\n1 100000 262144\n": 3}
    for text, pods in maps.items():
        path = tmp_path / "map"
        path.write_text(text)
        monkeypatch.setattr(
            user_ids,
            "id_map",
            lambda name, path=path: [
                (int(line.split()[0]), int(line.split()[2])) for line in path.read_text().splitlines()
            ],
        )
        own = user_ids.own_ids(1, 1)
        assert (own.pods, own.by_default) == (pods, False)
        assert own.first == IDS_PER_POD
        assert ("131072 ids" in own.why) is (pods == 0)
    assert [user_ids.own_ids(number, 3).first for number in (1, 2, 3)] == [65_536, 131_072, 196_608]


def test_nothing_is_claimed_for_an_ordinary_user(monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: pwd.getpwnam("nobody").pw_uid)
    assert claim_blocks(1, 110).pods == 0
