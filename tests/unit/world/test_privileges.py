import errno
import os
import re

import pytest

from lastcall.world import privileges


def test_capability_names_and_masks():
    assert privileges.capability_mask(("CHOWN", "CAP_KILL", "cap_net_admin")) == 1 | 1 << 5 | 1 << 12
    with pytest.raises(ValueError, match="unknown capability 'FLY'"):
        privileges.capability_mask(("FLY",))
    assert privileges.CAPABILITIES["CHECKPOINT_RESTORE"] == 40
    effective, permitted, _ = privileges.capget()
    assert effective & ~permitted == 0


@pytest.mark.loopback
def test_the_bounding_set_is_dropped_up_to_the_kernels_last_capability_and_a_refusal_names_the_call():
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        answer = "no answer"
        try:
            privileges.drop_bounding_set(privileges.capability_mask(("CHOWN", "SETPCAP")))
            with open("/proc/self/status") as status:
                answer = next(line.split()[1] for line in status if line.startswith("CapBnd:"))
            _, permitted, _ = privileges.capget()
            privileges.capset(0, permitted & ~privileges.capability_mask(("SETPCAP",)), 0)
            privileges.drop_bounding_set(0)
        except OSError as error:
            answer += f" {error.errno} {error.strerror}"
        os.write(tell, answer.encode())
        os._exit(0)
    os.waitpid(pid, 0)
    answer = os.read(told, 1000).decode()
    os.close(told)
    os.close(tell)
    kept, number, text = re.fullmatch(r"(\w+|no answer) (\d+) (.*)", answer).groups()
    if os.geteuid() == 0:
        assert int(kept, 16) == privileges.capability_mask(("CHOWN", "SETPCAP"))
    assert (int(number), text) == (errno.EPERM, "prctl(PR_CAPBSET_DROP): Operation not permitted")


def test_an_unknown_machine_has_no_filters(monkeypatch):
    monkeypatch.setattr(privileges, "MACHINE", "vax")
    assert privileges.has_seccomp_filters() is False


def test_a_refused_filter_names_the_call():
    with pytest.raises(OSError, match="seccomp: Invalid argument"):
        privileges.install_seccomp_filter(b"")
