/* Stands between a process and its files: counts the calls that touch one folder, and at the N-th one kills the process,
 * cuts a write short, or lets the call fail. Loaded with LD_PRELOAD; programmed through a small shared file, whose layout
 * `proof/syscalls.py` knows as well.
 *
 * Not seen: stores into mapped memory (SQLite's -shm), which are no system calls; calls that libc makes inside itself
 * (fopen), and raw `syscall()`; neither SQLite nor Python uses those for files that hold data.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { OPEN = 0, READ, WRITE, FSYNC, FDATASYNC, TRUNCATE, RENAME, UNLINK, LINK, MKDIR, CLOSE, LOCK, MAP, CREATE };
enum act { COUNT = 0, KILL_BEFORE, KILL_AFTER, KILL_HALFWAY, FAIL, SHORTEN };

#define LOG_MAX 65536
#define FD_MAX 65536

struct control {
    int64_t armed;
    int64_t kinds;   /* which kinds are counted: one bit each */
    int64_t at;      /* act at this call, counted from 1 */
    int64_t act;
    int64_t error;   /* errno of a call that fails */
    int64_t lasting; /* fail from then on, until disarmed */
    int64_t seen;    /* calls counted since armed */
    int64_t acted;   /* how often it acted */
    char under[1024];
    unsigned char log[LOG_MAX]; /* the kind of each counted call */
};

static struct control *control;
static unsigned char watched[FD_MAX]; /* 0 not known, 1 under the folder, 2 elsewhere */

#define REAL(name) ((__typeof__(&name))real_##name)
#define NEXT(name)                                                      \
    static void *real_##name;                                           \
    if (!real_##name) real_##name = dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("PROOF_SYSCALLS");
    if (!path) return;
    NEXT(open64);
    NEXT(mmap64);
    NEXT(close);
    int fd = REAL(open64)(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) { perror("shim: PROOF_SYSCALLS"); _exit(97); }
    void *at = REAL(mmap64)(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    REAL(close)(fd);
    if (at == MAP_FAILED) { perror("shim: PROOF_SYSCALLS"); _exit(97); }
    control = at;
}

static int within(const char *path) {
    size_t length = strlen(control->under);
    return length && strncmp(path, control->under, length) == 0 && (path[length] == '/' || path[length] == 0);
}

static int path_watched(int folder, const char *path) {
    if (!control || !path) return 0;
    if (path[0] == '/') return within(path);
    char full[2 * PATH_MAX], link[64];
    ssize_t length;
    if (folder == AT_FDCWD) strcpy(link, "/proc/self/cwd");
    else snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    length = readlink(link, full, PATH_MAX - 1);
    if (length <= 0) return 0;
    snprintf(full + length, sizeof full - (size_t)length, "/%s", path);
    return within(full);
}

static int fd_watched(int fd) {
    if (!control || fd < 0 || fd >= FD_MAX) return 0;
    if (watched[fd] == 0) {
        char link[64], path[PATH_MAX];
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, path, sizeof path - 1);
        if (length <= 0) return 0;
        path[length] = 0;
        watched[fd] = within(path) ? 1 : 2;
    }
    return watched[fd] == 1;
}

static void opened(int fd, int is_ours) {
    if (fd >= 0 && fd < FD_MAX) watched[fd] = is_ours ? 1 : 2;
}

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

/* What is to become of this call. Kills at once if that is the plan. */
static enum act met(enum kind kind) {
    if (!control->armed || !(control->kinds >> kind & 1)) return COUNT;
    int64_t number = __sync_add_and_fetch(&control->seen, 1);
    if (number <= LOG_MAX) control->log[number - 1] = (unsigned char)kind;
    if (!control->at || control->act == COUNT) return COUNT;
    int due = control->lasting ? number >= control->at : number == control->at;
    if (!due) return COUNT;
    __sync_add_and_fetch(&control->acted, 1);
    if (control->act == KILL_BEFORE) die();
    /* A disk that has taken half a write because it is full takes nothing more. */
    if (control->act == SHORTEN && number > control->at) return FAIL;
    return (enum act)control->act;
}

#define GUARDED(kind, call)                                             \
    enum act act = met(kind);                                           \
    if (act == FAIL) { errno = (int)control->error; return -1; }        \
    __typeof__(call) result = (call);                                   \
    if (act == KILL_AFTER || act == KILL_HALFWAY) die();                \
    return result

#define WRITTEN(bytes, whole, half)                                     \
    enum act act = met(WRITE);                                          \
    if (act == FAIL) { errno = (int)control->error; return -1; }        \
    if ((act == KILL_HALFWAY || act == SHORTEN) && (bytes) > 1) {       \
        ssize_t result = (half);                                        \
        if (act == KILL_HALFWAY) die();                                 \
        return result;                                                  \
    }                                                                   \
    ssize_t result = (whole);                                           \
    if (act == KILL_AFTER || act == KILL_HALFWAY) die();                \
    return result

static mode_t mode_of(int flags, va_list list) {
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
}

/* An open that may change the folder is of another kind than one that only looks. */
#define OPENED(name, folder, call)                                      \
    NEXT(name);                                                         \
    va_list list;                                                       \
    va_start(list, flags);                                              \
    mode_t mode = mode_of(flags, list);                                 \
    va_end(list);                                                       \
    int ours = path_watched(folder, path);                              \
    enum act act = ours ? met(flags & (O_CREAT | O_TRUNC) ? CREATE : OPEN) : COUNT; \
    if (act == FAIL) { errno = (int)control->error; return -1; }        \
    int fd = (call);                                                    \
    if (act == KILL_AFTER || act == KILL_HALFWAY) die();                \
    opened(fd, ours);                                                   \
    return fd

int open(const char *path, int flags, ...) { OPENED(open, AT_FDCWD, REAL(open)(path, flags, mode)); }
int open64(const char *path, int flags, ...) { OPENED(open64, AT_FDCWD, REAL(open64)(path, flags, mode)); }
int openat(int folder, const char *path, int flags, ...) { OPENED(openat, folder, REAL(openat)(folder, path, flags, mode)); }
int openat64(int folder, const char *path, int flags, ...) {
    OPENED(openat64, folder, REAL(openat64)(folder, path, flags, mode));
}
int creat(const char *path, mode_t mode) { return open64(path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return open64(path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

int close(int fd) {
    NEXT(close);
    int ours = fd_watched(fd);
    if (fd >= 0 && fd < FD_MAX) watched[fd] = 0;
    if (!ours) return REAL(close)(fd);
    enum act act = met(CLOSE);
    int result = REAL(close)(fd); /* Linux frees the number even when it tells of an error */
    if (act == FAIL) { errno = (int)control->error; return -1; }
    if (act == KILL_AFTER || act == KILL_HALFWAY) die();
    return result;
}

ssize_t read(int fd, void *into, size_t bytes) {
    NEXT(read);
    if (!fd_watched(fd)) return REAL(read)(fd, into, bytes);
    GUARDED(READ, REAL(read)(fd, into, bytes));
}
ssize_t pread(int fd, void *into, size_t bytes, off_t at) {
    NEXT(pread);
    if (!fd_watched(fd)) return REAL(pread)(fd, into, bytes, at);
    GUARDED(READ, REAL(pread)(fd, into, bytes, at));
}
ssize_t pread64(int fd, void *into, size_t bytes, off64_t at) {
    NEXT(pread64);
    if (!fd_watched(fd)) return REAL(pread64)(fd, into, bytes, at);
    GUARDED(READ, REAL(pread64)(fd, into, bytes, at));
}
ssize_t write(int fd, const void *from, size_t bytes) {
    NEXT(write);
    if (!fd_watched(fd)) return REAL(write)(fd, from, bytes);
    WRITTEN(bytes, REAL(write)(fd, from, bytes), REAL(write)(fd, from, bytes / 2));
}
ssize_t pwrite(int fd, const void *from, size_t bytes, off_t at) {
    NEXT(pwrite);
    if (!fd_watched(fd)) return REAL(pwrite)(fd, from, bytes, at);
    WRITTEN(bytes, REAL(pwrite)(fd, from, bytes, at), REAL(pwrite)(fd, from, bytes / 2, at));
}
ssize_t pwrite64(int fd, const void *from, size_t bytes, off64_t at) {
    NEXT(pwrite64);
    if (!fd_watched(fd)) return REAL(pwrite64)(fd, from, bytes, at);
    WRITTEN(bytes, REAL(pwrite64)(fd, from, bytes, at), REAL(pwrite64)(fd, from, bytes / 2, at));
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
    NEXT(writev);
    if (!fd_watched(fd) || count < 1) return REAL(writev)(fd, parts, count);
    struct iovec half = {parts[0].iov_base, parts[0].iov_len / 2};
    WRITTEN(parts[0].iov_len, REAL(writev)(fd, parts, count), REAL(writev)(fd, &half, 1));
}
ssize_t sendfile64(int to, int from, off64_t *at, size_t bytes) {
    NEXT(sendfile64);
    if (!fd_watched(to)) return REAL(sendfile64)(to, from, at, bytes);
    WRITTEN(bytes, REAL(sendfile64)(to, from, at, bytes), REAL(sendfile64)(to, from, at, bytes / 2));
}
ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t bytes, unsigned flags) {
    NEXT(copy_file_range);
    if (!fd_watched(to)) return REAL(copy_file_range)(from, from_at, to, to_at, bytes, flags);
    WRITTEN(bytes, REAL(copy_file_range)(from, from_at, to, to_at, bytes, flags),
            REAL(copy_file_range)(from, from_at, to, to_at, bytes / 2, flags));
}

int fsync(int fd) {
    NEXT(fsync);
    if (!fd_watched(fd)) return REAL(fsync)(fd);
    GUARDED(FSYNC, REAL(fsync)(fd));
}
int fdatasync(int fd) {
    NEXT(fdatasync);
    if (!fd_watched(fd)) return REAL(fdatasync)(fd);
    GUARDED(FDATASYNC, REAL(fdatasync)(fd));
}
int ftruncate(int fd, off_t size) {
    NEXT(ftruncate);
    if (!fd_watched(fd)) return REAL(ftruncate)(fd, size);
    GUARDED(TRUNCATE, REAL(ftruncate)(fd, size));
}
int ftruncate64(int fd, off64_t size) {
    NEXT(ftruncate64);
    if (!fd_watched(fd)) return REAL(ftruncate64)(fd, size);
    GUARDED(TRUNCATE, REAL(ftruncate64)(fd, size));
}
int truncate64(const char *path, off64_t size) {
    NEXT(truncate64);
    if (!path_watched(AT_FDCWD, path)) return REAL(truncate64)(path, size);
    GUARDED(TRUNCATE, REAL(truncate64)(path, size));
}
int fallocate64(int fd, int how, off64_t from, off64_t size) {
    NEXT(fallocate64);
    if (!fd_watched(fd)) return REAL(fallocate64)(fd, how, from, size);
    GUARDED(TRUNCATE, REAL(fallocate64)(fd, how, from, size));
}
/* It answers with the error itself. */
int posix_fallocate64(int fd, off64_t from, off64_t size) {
    NEXT(posix_fallocate64);
    enum act act = fd_watched(fd) ? met(TRUNCATE) : COUNT;
    if (act == FAIL) return (int)control->error;
    int result = REAL(posix_fallocate64)(fd, from, size);
    if (act == KILL_AFTER || act == KILL_HALFWAY) die();
    return result;
}

int rename(const char *from, const char *to) {
    NEXT(rename);
    if (!path_watched(AT_FDCWD, to)) return REAL(rename)(from, to);
    GUARDED(RENAME, REAL(rename)(from, to));
}
int renameat(int folder, const char *from, int other, const char *to) {
    NEXT(renameat);
    if (!path_watched(other, to)) return REAL(renameat)(folder, from, other, to);
    GUARDED(RENAME, REAL(renameat)(folder, from, other, to));
}
int renameat2(int folder, const char *from, int other, const char *to, unsigned flags) {
    NEXT(renameat2);
    if (!path_watched(other, to)) return REAL(renameat2)(folder, from, other, to, flags);
    GUARDED(RENAME, REAL(renameat2)(folder, from, other, to, flags));
}
int unlink(const char *path) {
    NEXT(unlink);
    if (!path_watched(AT_FDCWD, path)) return REAL(unlink)(path);
    GUARDED(UNLINK, REAL(unlink)(path));
}
int unlinkat(int folder, const char *path, int flags) {
    NEXT(unlinkat);
    if (!path_watched(folder, path)) return REAL(unlinkat)(folder, path, flags);
    GUARDED(UNLINK, REAL(unlinkat)(folder, path, flags));
}
int rmdir(const char *path) {
    NEXT(rmdir);
    if (!path_watched(AT_FDCWD, path)) return REAL(rmdir)(path);
    GUARDED(UNLINK, REAL(rmdir)(path));
}
int link(const char *from, const char *to) {
    NEXT(link);
    if (!path_watched(AT_FDCWD, to)) return REAL(link)(from, to);
    GUARDED(LINK, REAL(link)(from, to));
}
int linkat(int folder, const char *from, int other, const char *to, int flags) {
    NEXT(linkat);
    if (!path_watched(other, to)) return REAL(linkat)(folder, from, other, to, flags);
    GUARDED(LINK, REAL(linkat)(folder, from, other, to, flags));
}
int mkdir(const char *path, mode_t mode) {
    NEXT(mkdir);
    if (!path_watched(AT_FDCWD, path)) return REAL(mkdir)(path, mode);
    GUARDED(MKDIR, REAL(mkdir)(path, mode));
}
int mkdirat(int folder, const char *path, mode_t mode) {
    NEXT(mkdirat);
    if (!path_watched(folder, path)) return REAL(mkdirat)(folder, path, mode);
    GUARDED(MKDIR, REAL(mkdirat)(folder, path, mode));
}

int flock(int fd, int how) {
    NEXT(flock);
    if (!fd_watched(fd) || how == LOCK_UN) return REAL(flock)(fd, how);
    GUARDED(LOCK, REAL(flock)(fd, how));
}
/* Taking a lock can fail; giving one back cannot be refused. */
#define FCNTL(name)                                                     \
    NEXT(name);                                                         \
    va_list list;                                                       \
    va_start(list, what);                                               \
    void *given = va_arg(list, void *);                                 \
    va_end(list);                                                       \
    int takes = (what == F_SETLK || what == F_SETLKW) && ((struct flock *)given)->l_type != F_UNLCK; \
    if (!takes || !fd_watched(fd)) return REAL(name)(fd, what, given);  \
    GUARDED(LOCK, REAL(name)(fd, what, given))

int fcntl(int fd, int what, ...) { FCNTL(fcntl); }
int fcntl64(int fd, int what, ...) { FCNTL(fcntl64); }

#define MAPPED(name)                                                    \
    NEXT(name);                                                         \
    enum act act = fd >= 0 && fd_watched(fd) ? met(MAP) : COUNT;        \
    if (act == FAIL) { errno = (int)control->error; return MAP_FAILED; } \
    void *result = REAL(name)(where, bytes, allowed, flags, fd, at);    \
    if (act == KILL_AFTER || act == KILL_HALFWAY) die();                \
    return result

void *mmap(void *where, size_t bytes, int allowed, int flags, int fd, off_t at) { MAPPED(mmap); }
void *mmap64(void *where, size_t bytes, int allowed, int flags, int fd, off64_t at) { MAPPED(mmap64); }
