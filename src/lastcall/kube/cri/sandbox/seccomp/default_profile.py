"""RuntimeDefault: what containerd allows by default (contrib/seccomp/seccomp_default.go), as facts.

Everything an ordinary program calls is allowed; what administers the machine needs the capability for it; what
remains fails with EPERM. Making namespaces, keys, BPF programs, performance events and user faults is not allowed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "RuntimeDefault"

_ALLOWED = """
accept accept4 access adjtimex alarm arch_prctl bind brk cachestat capget capset chdir chmod chown clock_adjtime
clock_getres clock_gettime clock_nanosleep close close_range connect copy_file_range creat dup dup2 dup3 epoll_create
epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd eventfd2 execve
execveat exit exit_group faccessat faccessat2 fadvise64 fallocate fanotify_mark fchdir fchmod fchmodat fchmodat2
fchown fchownat fcntl fdatasync fgetxattr flistxattr flock fork fremovexattr fsetxattr fstat fstatfs fsync ftruncate
futex futex_requeue futex_wait futex_waitv futex_wake futimesat get_robust_list get_thread_area getcpu getcwd getdents
getdents64 getegid geteuid getgid getgroups getitimer getpeername getpgid getpgrp getpid getppid getpriority getrandom
getresgid getresuid getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday getuid getxattr getxattrat
inotify_add_watch inotify_init inotify_init1 inotify_rm_watch io_cancel io_destroy io_getevents io_pgetevents
io_setup io_submit ioctl ioprio_get ioprio_set kill landlock_add_rule landlock_create_ruleset landlock_restrict_self
lchown lgetxattr link linkat listen listmount listxattr listxattrat llistxattr lremovexattr lseek lsetxattr lstat
madvise map_shadow_stack membarrier memfd_create memfd_secret mincore mkdir mkdirat mknod mknodat mlock mlock2
mlockall mmap modify_ldt mprotect mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink mremap mseal
msgctl msgget msgrcv msgsnd msync munlock munlockall munmap name_to_handle_at nanosleep newfstatat open openat openat2
pause pidfd_getfd pidfd_open pidfd_send_signal pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll prctl pread64
preadv preadv2 prlimit64 process_mrelease process_vm_readv process_vm_writev pselect6 ptrace pwrite64 pwritev pwritev2
read readahead readlink readlinkat readv recvfrom recvmmsg recvmsg remap_file_pages removexattr removexattrat rename
renameat renameat2 restart_syscall rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn
rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min sched_getaffinity
sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam
sched_setscheduler sched_yield seccomp select semctl semget semop semtimedop sendfile sendmmsg sendmsg sendto
set_robust_list set_thread_area set_tid_address setfsgid setfsuid setgid setgroups setitimer setpgid setpriority
setregid setresgid setresuid setreuid setrlimit setsid setsockopt setuid setxattr setxattrat shmat shmctl shmdt shmget
shutdown sigaltstack signalfd signalfd4 socketpair splice stat statfs statmount statx symlink symlinkat sync
sync_file_range syncfs sysinfo tee tgkill time timer_create timer_delete timer_getoverrun timer_gettime timer_settime
timerfd_create timerfd_gettime timerfd_settime times tkill truncate umask uname unlink unlinkat utime utimensat utimes
vfork vmsplice wait4 waitid write writev
"""

_BY_CAPABILITY = {
    "CAP_DAC_READ_SEARCH": "open_by_handle_at",
    "CAP_SYS_ADMIN": "bpf clone clone3 fanotify_init fsconfig fsmount fsopen fspick lookup_dcookie lsm_get_self_attr "
    "lsm_list_modules lsm_set_self_attr mount mount_setattr move_mount open_tree perf_event_open quotactl quotactl_fd "
    "setdomainname sethostname setns syslog umount2 unshare",
    "CAP_SYS_BOOT": "reboot",
    "CAP_SYS_CHROOT": "chroot",
    "CAP_SYS_MODULE": "delete_module finit_module init_module",
    "CAP_SYS_PACCT": "acct",
    "CAP_SYS_PTRACE": "kcmp process_madvise",
    "CAP_SYS_RAWIO": "iopl ioperm",
    "CAP_SYS_TIME": "clock_settime settimeofday",
    "CAP_SYS_TTY_CONFIG": "vhangup",
    "CAP_SYS_NICE": "get_mempolicy mbind migrate_pages move_pages set_mempolicy set_mempolicy_home_node",
    "CAP_SYSLOG": "syslog",
    "CAP_BPF": "bpf",
    "CAP_PERFMON": "perf_event_open",
}

_NEW_NAMESPACES = 0x7E02_0000  # CLONE_NEW* flags
_ANY_PERSONALITY = (0x0, 0x0008, 0x20000, 0x20008, 0xFFFF_FFFF)
_AF_VSOCK = 40


def default_profile() -> dict[str, Any]:
    """Return the profile, in the JSON's shape."""
    allow = "SCMP_ACT_ALLOW"
    without_admin = {"caps": ["CAP_SYS_ADMIN"]}
    calls: list[dict[str, Any]] = [
        {"names": _ALLOWED.split(), "action": allow},
        {"names": ["socket"], "action": allow, "args": [_argument(0, _AF_VSOCK, "NE")]},
        # Threads and processes, but no namespaces; of clone3 a filter cannot see the flags: glibc falls back to clone.
        {
            "names": ["clone"],
            "action": allow,
            "args": [{**_argument(0, _NEW_NAMESPACES, "MASKED_EQ"), "valueTwo": 0}],
            "excludes": without_admin,
        },
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38, "excludes": without_admin},
    ]
    calls += [
        {"names": ["personality"], "action": allow, "args": [_argument(0, value, "EQ")]} for value in _ANY_PERSONALITY
    ]
    calls += [
        {"names": names.split(), "action": allow, "includes": {"caps": [capability]}}
        for capability, names in _BY_CAPABILITY.items()
    ]
    return {"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 1, "syscalls": calls}


def _argument(index: int, value: int, operator: str) -> dict[str, Any]:
    return {"index": index, "value": value, "op": f"SCMP_CMP_{operator}"}
