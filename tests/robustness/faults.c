// Preloaded into a process: makes the n-th call that concerns a file or a folder below a folder
// fail, or ends the process there. Every call of the C library that Python and Arrow make for
// files is counted: looking for a file, opening, reading, writing, seeking, closing, renaming.
// Also makes every read of a file in the folder return half of what was asked for.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { kNone, kKill, kNoSpace, kBroken, kShort, kCut };
enum { kOther, kRead, kWrite };

static char folder[PATH_MAX];
static int kind = kNone;
static int at = -1;    // the call that fails
static int calls = 0;  // so far
static int short_reads = 0;
static char failed[64];  // the name of the call that failed
static int cut = 0;      // whether files have ended for this process

void fault_arm(const char* in_folder, int of_kind, int at_call, int halve_reads) {
    strncpy(folder, in_folder, sizeof folder - 1);
    kind = of_kind, at = at_call, calls = 0, short_reads = halve_reads, cut = 0;
}
int fault_calls(void) {
    return calls;
}
const char* fault_name(void) {
    return failed;
}
void fault_disarm(void) {
    folder[0] = 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int path_in_folder(const char* path) {
    return folder[0] && path && strncmp(path, folder, strlen(folder)) == 0;
}
static int in_folder(int fd) {
    char link[64], path[PATH_MAX];
    if (!folder[0] || fd < 0) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t n = REAL(readlink)(link, path, sizeof path - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return path_in_folder(path);
}

// 0: go on; 1: fail with errno set; 2: do a part of it.
static int reached(const char* name, int what) {
    if (__atomic_fetch_add(&calls, 1, __ATOMIC_SEQ_CST) != at || kind == kNone) return 0;
    strncpy(failed, name, sizeof failed - 1);
    if (kind == kKill) kill(getpid(), SIGKILL);
    if (kind == kShort) return what == kOther ? 0 : 2;
    if (kind == kCut) {
        cut = 1;
        return 0;
    }
    errno = kind == kNoSpace ? ENOSPC : EIO;
    return 1;
}
static int of_file(int fd, const char* name) {
    return in_folder(fd) && reached(name, kOther);
}
static int of_path(const char* path, const char* name) {
    return path_in_folder(path) && reached(name, kOther);
}

ssize_t write(int fd, const void* data, size_t size) {
    if (in_folder(fd)) {
        const int what = reached("write", kWrite);
        if (what == 1) return -1;
        if (what == 2 && size > 1) size /= 2;
    }
    return REAL(write)(fd, data, size);
}
ssize_t read(int fd, void* data, size_t size) {
    if (in_folder(fd)) {
        const int what = reached("read", kRead);
        if (what == 1) return -1;
        if ((what == 2 || short_reads) && size > 1) size = (size + 1) / 2;
        if (cut) return 0;
    }
    return REAL(read)(fd, data, size);
}

// Files are closed in any case, as Linux does it.
int close(int fd) {
    const int fails = of_file(fd, "close"), error = errno;
    const int done = REAL(close)(fd);
    if (fails) errno = error;
    return fails ? -1 : done;
}
int fsync(int fd) {
    return of_file(fd, "fsync") ? -1 : REAL(fsync)(fd);
}
int fchmod(int fd, mode_t mode) {
    return of_file(fd, "fchmod") ? -1 : REAL(fchmod)(fd, mode);
}
int rename(const char* from, const char* to) {
    return of_path(to, "rename") ? -1 : REAL(rename)(from, to);
}
int linkat(int from_fd, const char* from, int to_fd, const char* to, int flags) {
    return of_file(to_fd, "linkat") ? -1 : REAL(linkat)(from_fd, from, to_fd, to, flags);
}
int unlink(const char* path) {
    return of_path(path, "unlink") ? -1 : REAL(unlink)(path);
}
int access(const char* path, int mode) {
    return of_path(path, "access") ? -1 : REAL(access)(path, mode);
}
ssize_t readlink(const char* path, char* out, size_t size) {
    return of_path(path, "readlink") ? -1 : REAL(readlink)(path, out, size);
}
int ioctl(int fd, unsigned long request, ...) {
    va_list list;
    va_start(list, request);
    void* const argument = va_arg(list, void*);
    va_end(list);
    return of_file(fd, "ioctl") ? -1 : REAL(ioctl)(fd, request, argument);
}

// Names with and without 64: programs use either.
#define OPEN(name)                                                         \
    int name(const char* path, int flags, ...) {                           \
        va_list list;                                                      \
        va_start(list, flags);                                             \
        const mode_t mode = va_arg(list, mode_t);                          \
        va_end(list);                                                      \
        return of_path(path, "open") ? -1 : REAL(name)(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)
#define STAT(name, type)                                           \
    int name(const char* path, struct type* out) {                 \
        return of_path(path, "stat") ? -1 : REAL(name)(path, out); \
    }
STAT(stat, stat)
STAT(stat64, stat64)
STAT(lstat, stat)
STAT(lstat64, stat64)
#define FSTAT(name, type)                                       \
    int name(int fd, struct type* out) {                        \
        return of_file(fd, "fstat") ? -1 : REAL(name)(fd, out); \
    }
FSTAT(fstat, stat)
FSTAT(fstat64, stat64)
#define SEEK(name, type)                                             \
    type name(int fd, type to, int from) {                           \
        return of_file(fd, "lseek") ? -1 : REAL(name)(fd, to, from); \
    }
SEEK(lseek, off_t)
SEEK(lseek64, off64_t)
#define MAP(name, type)                                                                \
    void* name(void* address, size_t size, int what, int flags, int fd, type from) {   \
        return of_file(fd, "mmap") ? MAP_FAILED                                        \
                                   : REAL(name)(address, size, what, flags, fd, from); \
    }
MAP(mmap, off_t)
MAP(mmap64, off64_t)
#define PREAD(name, type)                                                    \
    ssize_t name(int fd, void* data, size_t size, type from) {               \
        return of_file(fd, "pread") ? -1 : REAL(name)(fd, data, size, from); \
    }
PREAD(pread, off_t)
PREAD(pread64, off64_t)
