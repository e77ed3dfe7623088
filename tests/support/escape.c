/* What a program in a container may try. Each line it prints is `attempt: OK`, or the name of the errno.
 *
 * escape cgroups   mount every control group hierarchy from namespaces of its own, make a group, raise the limits
 * escape raise     the same, then use more memory than was allowed
 * escape freeze    stop itself by version 1's freezer, for ever
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

int main(int count, char **words) {
  setbuf(stdout, NULL);
  if (count > 1 && !strcmp(words[1], "cgroups")) return cgroups();
  if (count > 1 && !strcmp(words[1], "raise")) return cgroups() || use_memory();
  if (count > 1 && !strcmp(words[1], "freeze")) return freeze();
  return 2;
}
