"""What this kernel lacks: tests that need it are skipped by name, or expect "unknown"."""

import os

import pytest

from lastcall.world.needs import kernel_version

KERNEL = kernel_version(os.uname().release)
MAPS_TMPFS = KERNEL >= (6, 3)
"""Mounts of tmpfs can show other owners, which `hostUsers: false` needs."""
TELLS_ENDS = KERNEL >= (6, 15)
"""PIDFD_GET_INFO says how a process ended that another one started."""
needs_mapped_tmpfs = pytest.mark.skipif(not MAPS_TMPFS, reason="mounts of tmpfs cannot be idmapped (Linux 6.3)")
