// Preloaded into a process: makes the n-th call that changes a file in a folder fail, or ends the
// process there. Also makes every read of a file in the folder return half of what was asked for.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { kNone, kKill, kNoSpace, kBroken, kShort };

static char folder[PATH_MAX];
static int kind = kNone;
static int at = -1;    // the call that fails
static int calls = 0;  // so far
static int short_reads = 0;

void fault_arm(const char* in_folder, int of_kind, int at_call, int halve_reads) {
    strncpy(folder, in_folder, sizeof folder - 1);
    kind = of_kind, at = at_call, calls = 0, short_reads = halve_reads;
}
int fault_calls(void) {
    return calls;
}
void fault_disarm(void) {
    folder[0] = 0;
}

static int in_folder(int fd) {
    char link[64], path[PATH_MAX];
    if (!folder[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return strncmp(path, folder, strlen(folder)) == 0;
}
static int path_in_folder(const char* path) {
    return folder[0] && strncmp(path, folder, strlen(folder)) == 0;
}

// 0: go on; 1: fail with errno set; 2: do a part of it.
static int reached(int is_write) {
    if (calls++ != at || kind == kNone) return 0;
    if (kind == kKill) kill(getpid(), SIGKILL);
    if (kind == kShort) return is_write ? 2 : 0;
    errno = kind == kNoSpace ? ENOSPC : EIO;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void* data, size_t size) {
    if (in_folder(fd)) {
        const int what = reached(1);
        if (what == 1) return -1;
        if (what == 2 && size > 1) size /= 2;
    }
    return REAL(write)(fd, data, size);
}
ssize_t read(int fd, void* data, size_t size) {
    if (short_reads && size > 1 && in_folder(fd)) size = (size + 1) / 2;
    return REAL(read)(fd, data, size);
}
int fsync(int fd) {
    return in_folder(fd) && reached(0) ? -1 : REAL(fsync)(fd);
}
int fchmod(int fd, mode_t mode) {
    return in_folder(fd) && reached(0) ? -1 : REAL(fchmod)(fd, mode);
}
int rename(const char* from, const char* to) {
    return path_in_folder(to) && reached(0) ? -1 : REAL(rename)(from, to);
}
int linkat(int from_fd, const char* from, int to_fd, const char* to, int flags) {
    return in_folder(to_fd) && reached(0) ? -1 : REAL(linkat)(from_fd, from, to_fd, to, flags);
}
