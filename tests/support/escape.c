/* What a program in a container may try. Each line it prints is `attempt: OK`, or the name of the errno.
 *
 * escape cgroups   mount every control group hierarchy from namespaces of its own, make a group, raise the limits
 * escape raise     the same, then use more memory than was allowed
 * escape freeze    stop itself by version 1's freezer, for ever
 * escape calls     system calls and files that lead out of a container, or change the machine
 * escape pause     look into PID 1 of a PID namespace that is shared
 * escape whoami    effective user id, then a look at its own status
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PLACE "/tmp/escape"

static void say(const char *attempt, const char *what, int failed) {
  printf("%s%s: %s\n", attempt, what, failed ? strerrorname_np(errno) : "OK");
}

static int put(const char *path, const char *text) {
  int fd = open(path, O_WRONLY);
  if (fd < 0) return 1;
  int failed = write(fd, text, strlen(text)) < 0;
  close(fd);
  return failed;
}

static int into_own_user_namespace(int flags) {
  char map[64];
  int uid = getuid(), gid = getgid();
  if (unshare(CLONE_NEWUSER | flags)) return 1;
  put("/proc/self/setgroups", "deny");
  snprintf(map, sizeof map, "0 %d 1", uid);
  put("/proc/self/uid_map", map);
  snprintf(map, sizeof map, "0 %d 1", gid);
  return put("/proc/self/gid_map", map);
}

/* -- cgroups ------------------------------------------------------------------------------------------------------ */

static void limit(const char *name, const char *file, const char *text) {
  char path[128];
  snprintf(path, sizeof path, PLACE "/%s", file);
  if (access(path, F_OK) == 0) say(name, file, put(path, text));
}

static void hierarchy(const char *names) {
  char options[128], label[128];
  int unified = names[0] == 0;
  snprintf(options, sizeof options, "%s%s", strncmp(names, "name=", 5) ? "" : "none,", names);
  snprintf(label, sizeof label, "%s ", unified ? "unified" : names);
  if (mount("escape", PLACE, unified ? "cgroup2" : "cgroup", 0, unified ? NULL : options)) {
    say(label, "mount", 1);
    return;
  }
  say(label, "mount", 0);
  printf("%srelease_agent: %s\n", label, access(PLACE "/release_agent", F_OK) ? "hidden" : "there");
  DIR *directory = opendir(PLACE);
  for (struct dirent *entry; directory && (entry = readdir(directory));)
    if (entry->d_type == DT_DIR && entry->d_name[0] != '.') printf("%ssees: %s\n", label, entry->d_name);
  if (directory) closedir(directory);
  say(label, "mkdir", mkdir(PLACE "/lastcall-escape", 0755));
  limit(label, "memory.memsw.limit_in_bytes", "-1");
  limit(label, "memory.limit_in_bytes", "-1");
  limit(label, "cpu.cfs_quota_us", "-1");
  limit(label, "memory.max", "max");
  limit(label, "cpu.max", "max");
  limit(label, "pids.max", "max");
  fflush(stdout);
  umount2(PLACE, MNT_DETACH);
}

static int freeze(void) {
  mkdir(PLACE, 0755);
  if (into_own_user_namespace(CLONE_NEWNS | CLONE_NEWCGROUP) || mount("escape", PLACE, "cgroup", 0, "freezer")) {
    say("", "freezer", 1);
    return 0;
  }
  if (mkdir(PLACE "/below", 0755) || put(PLACE "/below/tasks", "0")) {
    say("", "freezer", 1);
    return 0;
  }
  say("", "freezer", 0);
  put(PLACE "/below/freezer.state", "FROZEN");
  for (;;) pause();
}

static int use_memory(void) {
  for (int i = 0; i < 64; i++) memset(malloc(1 << 20), 1, 1 << 20);
  puts("memory: OK");
  return 0;
}

static int cgroups(void) {
  char line[4096];
  mkdir(PLACE, 0755);
  if (into_own_user_namespace(CLONE_NEWNS | CLONE_NEWCGROUP)) {
    say("", "namespaces", 1);
    return 0;
  }
  say("", "namespaces", 0);
  FILE *file = fopen("/proc/self/cgroup", "r");
  while (file && fgets(line, sizeof line, file)) {
    char *names = strchr(line, ':') + 1;
    *strchr(names, ':') = 0;
    hierarchy(names);
  }
  return 0;
}

/* -- calls -------------------------------------------------------------------------------------------------------- */

/* Each attempt has a process of its own, and mounts of its own where it may: what it changes goes away with it. */
#define TRY(name, expression)                     \
  do {                                            \
    fflush(stdout);                               \
    pid_t child = fork();                         \
    if (child == 0) {                             \
      unshare(CLONE_NEWNS);                       \
      errno = 0;                                  \
      long result = (long)(expression);           \
      say(name, "", result < 0);                  \
      _exit(0);                                   \
    }                                             \
    waitpid(child, NULL, 0);                      \
  } while (0)

static int writes(const char *path) { return open(path, O_WRONLY); }

static int add_link(void) {
  struct {
    struct nlmsghdr header;
    struct ifinfomsg link;
    struct rtattr name;
    char text[8];
    struct rtattr info;
    struct rtattr kind;
    char dummy[8];
  } message = {0};
  struct {
    struct nlmsghdr header;
    struct nlmsgerr error;
  } answer;
  int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  if (fd < 0) return -1;
  message.header.nlmsg_len = sizeof message;
  message.header.nlmsg_type = RTM_NEWLINK;
  message.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK;
  message.name.rta_type = IFLA_IFNAME;
  message.name.rta_len = sizeof message.name + 8;
  strcpy(message.text, "escape0");
  message.info.rta_type = IFLA_LINKINFO;
  message.info.rta_len = sizeof message.info + sizeof message.kind + 8;
  message.kind.rta_type = IFLA_INFO_KIND;
  message.kind.rta_len = sizeof message.kind + 6;
  strcpy(message.dummy, "dummy");
  if (send(fd, &message, sizeof message, 0) < 0 || recv(fd, &answer, sizeof answer, 0) < 0) return -1;
  errno = -answer.error.error;
  return errno ? -1 : 0;
}

static int leave_by_chroot(void) {
  struct stat before, after;
  stat("/", &before);
  mkdir("/tmp/jail", 0755);
  int root = open("/", O_RDONLY | O_DIRECTORY);
  if (chroot("/tmp/jail") || fchdir(root)) return -1;
  for (int i = 0; i < 64; i++)
    if (chdir("..")) return -1;
  if (chroot(".")) return -1;
  stat("/", &after);
  if (before.st_dev == after.st_dev && before.st_ino == after.st_ino) {
    errno = ENOENT; /* nothing above */
    return -1;
  }
  return 0;
}

static int by_handle(void) {
  struct {
    struct file_handle head;
    unsigned char bytes[64];
  } handle = {.head = {.handle_bytes = 64}};
  int mount_id, fd = open("/", O_RDONLY | O_DIRECTORY);
  if (name_to_handle_at(fd, "", &handle.head, &mount_id, AT_EMPTY_PATH)) {
    handle.head.handle_bytes = 8;
    handle.head.handle_type = 1;
  }
  return open_by_handle_at(fd, &handle.head, O_RDONLY);
}

static int foreign_fds(void) {
  DIR *directory = opendir("/proc/self/fd");
  for (struct dirent *entry; (entry = readdir(directory));) {
    int fd = atoi(entry->d_name);
    if (entry->d_name[0] != '.' && fd > 2 && fd != dirfd(directory)) return 0;
  }
  errno = ENOENT;
  return -1;
}

static int foreign_processes(void) {
  DIR *directory = opendir("/proc");
  for (struct dirent *entry; (entry = readdir(directory));) {
    int pid = atoi(entry->d_name);
    if (pid > 1 && pid != getpid() && pid != getppid()) return ptrace(PTRACE_ATTACH, pid, 0, 0) ? -1 : 0;
  }
  errno = ESRCH;
  return -1;
}

static int abstract_sockets(void) {
  char line[512];
  FILE *file = fopen("/proc/net/unix", "r");
  while (file && fgets(line, sizeof line, file))
    if (strchr(line, '@')) return 0;
  errno = ENOENT;
  return -1;
}

static int read_kernel_memory(void) {
  char byte;
  int fd = open("/proc/kcore", O_RDONLY);
  if (fd < 0) return -1;
  errno = ENODATA;
  return read(fd, &byte, 1) == 1 ? 0 : -1;
}

static int set_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return clock_settime(CLOCK_REALTIME, &now);
}

static int raise_as_root_of_its_own(void) {
  return into_own_user_namespace(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWCGROUP) ? -1 : 0;
}

static const char *const FILE_SYSTEMS[] = {"proc",  "sysfs",  "tmpfs",      "cgroup",  "cgroup2", "mqueue", "devpts",
                                           "ramfs", "debugfs", "securityfs", "tracefs", "bpf",     "fuse",   "overlay"};

static int calls(void) {
  char label[64], buffer[256] = {0};
  mkdir(PLACE, 0755);
  for (size_t i = 0; i < sizeof FILE_SYSTEMS / sizeof *FILE_SYSTEMS; i++) {
    snprintf(label, sizeof label, "mount %s", FILE_SYSTEMS[i]);
    TRY(label, mount("escape", PLACE, FILE_SYSTEMS[i], 0, strcmp(FILE_SYSTEMS[i], "cgroup") ? NULL : "freezer"));
  }
  TRY("remount /proc/sys", mount(NULL, "/proc/sys", NULL, MS_REMOUNT | MS_BIND, NULL));
  TRY("remount /sys", mount(NULL, "/sys", NULL, MS_REMOUNT | MS_BIND, NULL));
  TRY("unmount /proc/sys", umount2("/proc/sys", MNT_DETACH));
  TRY("unmount /proc/kcore", umount2("/proc/kcore", MNT_DETACH));
  TRY("pivot_root", syscall(SYS_pivot_root, PLACE, PLACE));
  TRY("unshare user", unshare(CLONE_NEWUSER));
  TRY("unshare all as root of its own", raise_as_root_of_its_own());
  TRY("unshare mnt", unshare(CLONE_NEWNS));
  TRY("unshare net", unshare(CLONE_NEWNET));
  TRY("setns", setns(open("/proc/self/ns/uts", O_RDONLY), 0));
  TRY("clone3", syscall(SYS_clone3, buffer, (size_t)0));
  TRY("chroot breakout", leave_by_chroot());
  TRY("open_by_handle_at", by_handle());
  TRY("mknod mem", mknod("/tmp/mem", S_IFCHR | 0600, makedev(1, 1)));
  TRY("mknod disk", mknod("/tmp/disk", S_IFBLK | 0600, makedev(8, 0)));
  TRY("open /dev/mem", writes("/dev/mem"));
  TRY("open /dev/kmsg", writes("/dev/kmsg"));
  TRY("write core_pattern", writes("/proc/sys/kernel/core_pattern"));
  TRY("write modprobe", writes("/proc/sys/kernel/modprobe"));
  TRY("write sysrq-trigger", writes("/proc/sysrq-trigger"));
  TRY("write uevent_helper", writes("/sys/kernel/uevent_helper"));
  TRY("write swappiness", writes("/proc/sys/vm/swappiness"));
  TRY("write oom_score_adj of PID 1 below", put("/proc/1/oom_score_adj", "-1000") ? -1 : 0);
  TRY("read kcore", read_kernel_memory());
  TRY("inherited fds", foreign_fds());
  TRY("ptrace others", foreign_processes());
  TRY("abstract sockets", abstract_sockets());
  TRY("keyctl", syscall(SYS_keyctl, 1, 0, 0, 0, 0));
  TRY("add_key", syscall(SYS_add_key, "user", "escape", "x", (size_t)1, -3));
  TRY("bpf", syscall(SYS_bpf, 5, buffer, 8));
  TRY("userfaultfd", syscall(SYS_userfaultfd, 0));
  TRY("io_uring", syscall(SYS_io_uring_setup, 1, buffer));
  TRY("perf_event_open", syscall(SYS_perf_event_open, buffer, 0, -1, -1, 0));
  TRY("init_module", syscall(SYS_init_module, buffer, 8, ""));
  TRY("kexec_load", syscall(SYS_kexec_load, 0, 0, NULL, 0));
  TRY("reboot", syscall(SYS_reboot, 0xfee1dead, 672274793, 0, NULL)); /* disables Ctrl-Alt-Del, no more */
  TRY("swapon", syscall(SYS_swapon, "/tmp/disk", 0));
  TRY("set the clock", set_clock());
  TRY("sethostname", sethostname("escape", 6));
  TRY("syslog clear", syscall(SYS_syslog, 5, NULL, 0));
  TRY("acct", syscall(SYS_acct, NULL));
  TRY("add a link", add_link());
  TRY("vsock", socket(40, SOCK_STREAM, 0));
  return 0;
}

/* -- a shared PID namespace --------------------------------------------------------------------------------------- */

static int root_of_one(void) {
  DIR *directory = opendir("/proc/1/root");
  if (!directory) return -1;
  for (struct dirent *entry; (entry = readdir(directory));)
    if (entry->d_name[0] != '.') return 0;
  errno = ENOENT;
  return -1;
}

static int memory_of_one(void) {
  char line[256];
  FILE *maps = fopen("/proc/1/maps", "r");
  if (!maps) return -1;
  while (fgets(line, sizeof line, maps))
    if (strstr(line, "[heap]") || strstr(line, ".so")) return 0; /* a copy of a program that knows more */
  errno = ENOENT;
  return -1;
}

static int in_its_network(void) {
  char ours[64] = {0}, theirs[64] = {0};
  if (readlink("/proc/self/ns/net", ours, 63) < 0 || readlink("/proc/1/ns/net", theirs, 63) < 0) return -1;
  errno = ENOENT;
  return strcmp(ours, theirs) ? 0 : -1;
}

static int capabilities_of_one(void) {
  char line[256];
  FILE *file = fopen("/proc/1/status", "r");
  while (file && fgets(line, sizeof line, file))
    if (!strncmp(line, "CapPrm", 6) && strstr(line, "0000000000000000")) {
      errno = ENOENT;
      return -1;
    }
  return 0;
}

static int shared(void) {
  TRY("PID 1 has files", root_of_one());
  TRY("PID 1 has memory of others", memory_of_one());
  TRY("PID 1 is in another network", in_its_network());
  TRY("PID 1 has capabilities", capabilities_of_one());
  return 0;
}

/* -- no_new_privs ------------------------------------------------------------------------------------------------- */

static int whoami(void) {
  char line[256];
  printf("euid: %d\n", geteuid());
  FILE *file = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, file))
    if (!strncmp(line, "NoNewPrivs", 10) || !strncmp(line, "Cap", 3)) {
      char *value = strchr(line, '\t');
      *(value - 1) = 0;
      value[strcspn(value, "\n")] = 0;
      printf("%s: %s\n", line, value + 1);
    }
  return 0;
}

int main(int count, char **words) {
  setbuf(stdout, NULL);
  if (count > 1 && !strcmp(words[1], "cgroups")) return cgroups();
  if (count > 1 && !strcmp(words[1], "raise")) return cgroups() || use_memory();
  if (count > 1 && !strcmp(words[1], "freeze")) return freeze();
  if (count > 1 && !strcmp(words[1], "calls")) return calls();
  if (count > 1 && !strcmp(words[1], "pause")) return shared();
  if (count > 1 && !strcmp(words[1], "whoami")) return whoami();
  return 2;
}
