"""What `bench counts` reads out of strace's lines and of the API server's metrics."""

from collections import Counter

from bench.counts import counted, requests_in

STRACE = """\
17 clone3({flags=CLONE_VM}, 88) = 21
21 execve("/bin/sh"..., [...], 0x7ffd /* 3 vars */) = 0
17 sendto(9<NETLINK:[ROUTE:99]>, ..., 120, 0, NULL, 0) = 120
17 sendto(8<UNIX-STREAM:[4->5]>, ..., 12, 0, NULL, 0) = 12
17 epoll_wait(3<anon_inode:[eventpoll]>, [], 1024, 0) = 0
17 epoll_wait(3<anon_inode:[eventpoll]>,  <unfinished ...>
17 <... epoll_wait resumed>[], 1024, 10) = 0
21 +++ exited with 0 +++
"""

METRICS = """\
# TYPE apiserver_request_total counter
apiserver_request_total{code="201",resource="pods",subresource="",verb="POST",version="v1"} 3
apiserver_request_total{code="409",resource="pods",subresource="",verb="POST",version="v1"} 1
apiserver_request_total{code="200",resource="pods",subresource="status",verb="PATCH",version="v1"} 5
apiserver_request_total{code="200",resource="pods",subresource="",verb="WATCH",version="v1"} 7
apiserver_request_total{code="200",resource="leases",subresource="",verb="PUT",version="v1"} 9
apiserver_request_total{code="200",resource="",subresource="",verb="GET",version=""} 2
"""


def test_each_call_counts_once_and_only_netlink_sockets_are_netlink() -> None:
    expected = {"processes": 1, "programs": 1, "netlink messages": 1, "wake-ups": 2}
    assert counted(STRACE.splitlines()) == Counter(expected)


def test_requests_are_summed_over_their_codes_without_watches_leases_and_what_is_no_resource() -> None:
    assert requests_in(METRICS) == Counter({("POST", "pods"): 4, ("PATCH", "pods/status"): 5})
