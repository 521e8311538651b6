/* Writes down what a process does to the files of one folder, in order: every write with its bytes, every truncation, name and
 * sync, and between them what the process says was acknowledged. It sits below every SQLite library and below Python alike.
 * Loaded with LD_PRELOAD; `proof/recorded_disk.py` reads what it wrote.
 *
 * Each call is made and written down under one lock, so that the record has the order in which things happened. Only what
 * succeeded is written down. Not seen: stores into mapped memory (SQLite's -shm, which is left out altogether), and raw
 * `syscall()`. A call that would change files in a way that nobody reads here is written down as such, and refused there.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define FD_MAX 65536
#define SHARED_MEMORY "-shm"

/* What stands before the bytes of each entry; two names or one lot of bytes follow. */
struct entry {
    int64_t kind;
    int64_t fd;
    int64_t number; /* an offset, a size or flags */
    int64_t first, second; /* bytes that follow */
};

static int record = -1;
static char folder[PATH_MAX];
static unsigned char watched[FD_MAX]; /* 0 not known, 1 under the folder, 2 elsewhere */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) ((__typeof__(&name))real_##name)
#define NEXT(name)                                                      \
    static void *real_##name;                                           \
    if (!real_##name) real_##name = dlsym(RTLD_NEXT, #name)

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("PROOF_RECORD"), *under = getenv("PROOF_RECORDED");
    if (!path || !under) return;
    NEXT(open64);
    snprintf(folder, sizeof folder, "%s", under);
    record = REAL(open64)(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (record < 0) { perror("recorder: PROOF_RECORD"); _exit(97); }
}

static int within(const char *path) {
    size_t length = strlen(folder), all = strlen(path), end = strlen(SHARED_MEMORY);
    if (record < 0 || strncmp(path, folder, length) || (path[length] != '/' && path[length] != 0)) return 0;
    return all < end || strcmp(path + all - end, SHARED_MEMORY);
}

/* The whole path of a name; whether it is under the folder. */
static int whole(int base, const char *path, char *full) {
    if (record < 0 || !path) return 0;
    if (path[0] == '/') {
        snprintf(full, PATH_MAX, "%s", path);
        return within(full);
    }
    char link[64], found[PATH_MAX];
    if (base == AT_FDCWD) strcpy(link, "/proc/self/cwd");
    else snprintf(link, sizeof link, "/proc/self/fd/%d", base);
    ssize_t length = readlink(link, found, sizeof found - 1);
    if (length <= 0) return 0;
    found[length] = 0;
    if (snprintf(full, PATH_MAX, "%s/%s", found, path) >= PATH_MAX) return 0;
    return within(full);
}

static int fd_watched(int fd) {
    if (record < 0 || fd < 0 || fd >= FD_MAX) return 0;
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

static void put(const void *from, size_t bytes) {
    NEXT(write);
    while (bytes) {
        ssize_t done = REAL(write)(record, from, bytes);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) { perror("recorder: the record cannot be written"); _exit(97); }
        from = (const char *)from + done;
        bytes -= (size_t)done;
    }
}

static void note(char kind, int fd, int64_t number, const void *first, size_t one, const void *second, size_t two) {
    int kept = errno;
    struct entry entry = {kind, fd, number, (int64_t)one, (int64_t)two};
    put(&entry, sizeof entry);
    put(first, one);
    put(second, two);
    errno = kept;
}

/* Called by the process itself: a call has returned, and this is what it promised. */
void proof_acknowledge(const void *what, size_t bytes) {
    if (record < 0) return;
    pthread_mutex_lock(&lock);
    note('A', -1, 0, what, bytes, NULL, 0);
    pthread_mutex_unlock(&lock);
}

/* Makes the call, and writes it down if it succeeded. */
#define DONE(kind, call, ok, fd, number, first, one, second, two)       \
    pthread_mutex_lock(&lock);                                          \
    __typeof__(call) result = (call);                                   \
    if (ok) note(kind, fd, number, first, one, second, two);            \
    pthread_mutex_unlock(&lock);                                        \
    return result

#define NAMED(kind, call, number, path) DONE(kind, call, result == 0, -1, number, path, strlen(path), NULL, 0)
#define MOVED(kind, call, from, to) DONE(kind, call, result == 0, -1, 0, from, strlen(from), to, strlen(to))
#define UNREAD(what, call) DONE('?', call, 1, -1, 0, what, strlen(what), NULL, 0)

#define OPENED(name, base, call)                                        \
    NEXT(name);                                                         \
    va_list list;                                                       \
    va_start(list, flags);                                              \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0; \
    va_end(list);                                                       \
    char full[PATH_MAX];                                                \
    int ours = whole(base, path, full);                                 \
    if (!ours) {                                                        \
        int fd = (call);                                                \
        if (fd >= 0 && fd < FD_MAX) watched[fd] = 2;                    \
        return fd;                                                      \
    }                                                                   \
    pthread_mutex_lock(&lock);                                          \
    int fd = (call);                                                    \
    if (fd >= 0 && fd < FD_MAX) watched[fd] = 1;                        \
    if (fd >= 0) note('O', fd, flags, full, strlen(full), NULL, 0);     \
    pthread_mutex_unlock(&lock);                                        \
    return fd

int open(const char *path, int flags, ...) { OPENED(open, AT_FDCWD, REAL(open)(path, flags, mode)); }
int open64(const char *path, int flags, ...) { OPENED(open64, AT_FDCWD, REAL(open64)(path, flags, mode)); }
int openat(int base, const char *path, int flags, ...) { OPENED(openat, base, REAL(openat)(base, path, flags, mode)); }
int openat64(int base, const char *path, int flags, ...) { OPENED(openat64, base, REAL(openat64)(base, path, flags, mode)); }
int creat(const char *path, mode_t mode) { return open64(path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return open64(path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

int close(int fd) {
    NEXT(close);
    int ours = fd_watched(fd);
    if (fd >= 0 && fd < FD_MAX) watched[fd] = 0;
    if (!ours) return REAL(close)(fd);
    DONE('C', REAL(close)(fd), 1, fd, 0, NULL, 0, NULL, 0);
}

#define WRITTEN(call, at) DONE('W', call, result > 0, fd, at, from, (size_t)result, NULL, 0)

ssize_t write(int fd, const void *from, size_t bytes) {
    NEXT(write);
    if (!fd_watched(fd)) return REAL(write)(fd, from, bytes);
    WRITTEN(REAL(write)(fd, from, bytes), lseek64(fd, 0, SEEK_CUR) - result);
}
ssize_t pwrite(int fd, const void *from, size_t bytes, off_t at) {
    NEXT(pwrite);
    if (!fd_watched(fd)) return REAL(pwrite)(fd, from, bytes, at);
    WRITTEN(REAL(pwrite)(fd, from, bytes, at), at);
}
ssize_t pwrite64(int fd, const void *from, size_t bytes, off64_t at) {
    NEXT(pwrite64);
    if (!fd_watched(fd)) return REAL(pwrite64)(fd, from, bytes, at);
    WRITTEN(REAL(pwrite64)(fd, from, bytes, at), at);
}

int fsync(int fd) {
    NEXT(fsync);
    if (!fd_watched(fd)) return REAL(fsync)(fd);
    DONE('S', REAL(fsync)(fd), result == 0, fd, 0, NULL, 0, NULL, 0);
}
int fdatasync(int fd) {
    NEXT(fdatasync);
    if (!fd_watched(fd)) return REAL(fdatasync)(fd);
    DONE('S', REAL(fdatasync)(fd), result == 0, fd, 0, NULL, 0, NULL, 0);
}
int ftruncate(int fd, off_t size) {
    NEXT(ftruncate);
    if (!fd_watched(fd)) return REAL(ftruncate)(fd, size);
    DONE('T', REAL(ftruncate)(fd, size), result == 0, fd, size, NULL, 0, NULL, 0);
}
int ftruncate64(int fd, off64_t size) {
    NEXT(ftruncate64);
    if (!fd_watched(fd)) return REAL(ftruncate64)(fd, size);
    DONE('T', REAL(ftruncate64)(fd, size), result == 0, fd, size, NULL, 0, NULL, 0);
}

int mkdir(const char *path, mode_t mode) {
    NEXT(mkdir);
    char full[PATH_MAX];
    if (!whole(AT_FDCWD, path, full)) return REAL(mkdir)(path, mode);
    NAMED('M', REAL(mkdir)(path, mode), 0, full);
}
int mkdirat(int base, const char *path, mode_t mode) {
    NEXT(mkdirat);
    char full[PATH_MAX];
    if (!whole(base, path, full)) return REAL(mkdirat)(base, path, mode);
    NAMED('M', REAL(mkdirat)(base, path, mode), 0, full);
}
int unlink(const char *path) {
    NEXT(unlink);
    char full[PATH_MAX];
    if (!whole(AT_FDCWD, path, full)) return REAL(unlink)(path);
    NAMED('U', REAL(unlink)(path), 0, full);
}
int unlinkat(int base, const char *path, int flags) {
    NEXT(unlinkat);
    char full[PATH_MAX];
    if (!whole(base, path, full)) return REAL(unlinkat)(base, path, flags);
    NAMED('U', REAL(unlinkat)(base, path, flags), 0, full);
}
int rmdir(const char *path) {
    NEXT(rmdir);
    char full[PATH_MAX];
    if (!whole(AT_FDCWD, path, full)) return REAL(rmdir)(path);
    NAMED('U', REAL(rmdir)(path), 0, full);
}
int rename(const char *from, const char *to) {
    NEXT(rename);
    char old[PATH_MAX], new[PATH_MAX];
    if (!whole(AT_FDCWD, from, old) | !whole(AT_FDCWD, to, new)) return REAL(rename)(from, to);
    MOVED('R', REAL(rename)(from, to), old, new);
}
int renameat(int base, const char *from, int other, const char *to) {
    NEXT(renameat);
    char old[PATH_MAX], new[PATH_MAX];
    if (!whole(base, from, old) | !whole(other, to, new)) return REAL(renameat)(base, from, other, to);
    MOVED('R', REAL(renameat)(base, from, other, to), old, new);
}
int renameat2(int base, const char *from, int other, const char *to, unsigned flags) {
    NEXT(renameat2);
    char old[PATH_MAX], new[PATH_MAX];
    if (!whole(base, from, old) | !whole(other, to, new)) return REAL(renameat2)(base, from, other, to, flags);
    MOVED(flags & RENAME_EXCHANGE ? 'X' : 'R', REAL(renameat2)(base, from, other, to, flags), old, new);
}

/* Calls by which nothing of ours changes files today. */

ssize_t writev(int fd, const struct iovec *parts, int count) {
    NEXT(writev);
    if (!fd_watched(fd)) return REAL(writev)(fd, parts, count);
    UNREAD("writev", REAL(writev)(fd, parts, count));
}
ssize_t sendfile64(int to, int from, off64_t *at, size_t bytes) {
    NEXT(sendfile64);
    if (!fd_watched(to)) return REAL(sendfile64)(to, from, at, bytes);
    UNREAD("sendfile", REAL(sendfile64)(to, from, at, bytes));
}
ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t bytes, unsigned flags) {
    NEXT(copy_file_range);
    if (!fd_watched(to)) return REAL(copy_file_range)(from, from_at, to, to_at, bytes, flags);
    UNREAD("copy_file_range", REAL(copy_file_range)(from, from_at, to, to_at, bytes, flags));
}
int truncate64(const char *path, off64_t size) {
    NEXT(truncate64);
    char full[PATH_MAX];
    if (!whole(AT_FDCWD, path, full)) return REAL(truncate64)(path, size);
    UNREAD("truncate", REAL(truncate64)(path, size));
}
int fallocate64(int fd, int how, off64_t from, off64_t size) {
    NEXT(fallocate64);
    if (!fd_watched(fd)) return REAL(fallocate64)(fd, how, from, size);
    UNREAD("fallocate", REAL(fallocate64)(fd, how, from, size));
}
int posix_fallocate64(int fd, off64_t from, off64_t size) {
    NEXT(posix_fallocate64);
    if (!fd_watched(fd)) return REAL(posix_fallocate64)(fd, from, size);
    UNREAD("posix_fallocate", REAL(posix_fallocate64)(fd, from, size));
}
int link(const char *from, const char *to) {
    NEXT(link);
    char full[PATH_MAX];
    if (!whole(AT_FDCWD, to, full)) return REAL(link)(from, to);
    UNREAD("link", REAL(link)(from, to));
}
int linkat(int base, const char *from, int other, const char *to, int flags) {
    NEXT(linkat);
    char full[PATH_MAX];
    if (!whole(other, to, full)) return REAL(linkat)(base, from, other, to, flags);
    UNREAD("link", REAL(linkat)(base, from, other, to, flags));
}
