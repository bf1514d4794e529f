/*
 * Loaded before the C library (LD_PRELOAD): the n-th call of one kind below a folder fails, or ends its process.
 *
 * SICK_CALLS names a file that a test has made and every process maps: the layout is `struct sickness`. Threads and
 * processes, Python and its JVM, count in it together, and so do children after a fork. Calls are counted while it is
 * armed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum call { WRITE = 1, RENAME, LINK, UNLINK, READ };

struct sickness {
    int armed;
    int call;     /* enum call */
    int error;    /* an errno; 0 ends the process by SIGKILL */
    int number;   /* which call, from 1 */
    int lasting;  /* every later call fails, too */
    int count;    /* calls so far */
    int hits;     /* calls that failed */
    int unused;
    char folder[1024];
    char left_out[1024];  /* a folder below it that does not count; may be empty */
    char hit[1024];       /* the path of the first call that failed */
};

static struct sickness *shared;

__attribute__((constructor)) static void map_shared(void)
{
    const char *path = getenv("SICK_CALLS");
    int handle = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);
    if (handle < 0)
        return;
    void *mapped = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, handle, 0);
    close(handle);
    if (mapped != MAP_FAILED)
        shared = mapped;
}

static int is_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    return length > 0 && strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == 0);
}

/* Spark's own log lies in the run folder, and is written by whoever has something to say. */
static int counts(const char *path)
{
    size_t length = strlen(path);
    return is_below(path, shared->folder) && !is_below(path, shared->left_out)
        && !(length >= 10 && strcmp(path + length - 10, "/spark.log") == 0);
}

/* Whether this call fails; errno is set then. */
static int is_sick(enum call call, const char *path)
{
    if (shared == NULL || !shared->armed || shared->call != (int)call || path == NULL || !counts(path))
        return 0;
    int number = __atomic_add_fetch(&shared->count, 1, __ATOMIC_SEQ_CST);
    if (number < shared->number || (number > shared->number && !shared->lasting))
        return 0;
    if (__atomic_add_fetch(&shared->hits, 1, __ATOMIC_SEQ_CST) == 1)
        snprintf(shared->hit, sizeof shared->hit, "%s", path);
    if (shared->error == 0)
        kill(getpid(), SIGKILL);
    errno = shared->error;
    return 1;
}

static int is_sick_at(enum call call, int folder, const char *path)
{
    char link[64], place[PATH_MAX], whole[2 * PATH_MAX];
    if (shared == NULL || !shared->armed || shared->call != (int)call || path == NULL)
        return 0;
    if (path[0] == '/')
        return is_sick(call, path);
    if (folder == AT_FDCWD)
        snprintf(link, sizeof link, "/proc/self/cwd");
    else
        snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t length = readlink(link, place, sizeof place - 1);
    if (length <= 0)
        return 0;
    place[length] = 0;
    snprintf(whole, sizeof whole, "%s/%s", place, path);
    return is_sick(call, whole);
}

static int is_sick_handle(enum call call, int handle)
{
    char link[64], path[PATH_MAX];
    if (shared == NULL || !shared->armed || shared->call != (int)call)
        return 0;
    int reason = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(link, path, sizeof path - 1);
    errno = reason;
    if (length <= 0 || path[0] != '/')
        return 0;
    path[length] = 0;
    return is_sick(call, path);
}

#define NEXT(name) \
    static __typeof__(name) *next; \
    if (next == NULL) \
        next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

#define SICK_HANDLE(name, call, type, parameters, arguments) \
    type name parameters \
    { \
        NEXT(name); \
        if (is_sick_handle(call, handle)) \
            return -1; \
        return next arguments; \
    }

SICK_HANDLE(write, WRITE, ssize_t, (int handle, const void *data, size_t size), (handle, data, size))
SICK_HANDLE(pwrite, WRITE, ssize_t, (int handle, const void *data, size_t size, off_t at), (handle, data, size, at))
SICK_HANDLE(pwrite64, WRITE, ssize_t, (int handle, const void *data, size_t size, off64_t at), (handle, data, size, at))
SICK_HANDLE(writev, WRITE, ssize_t, (int handle, const struct iovec *data, int count), (handle, data, count))
SICK_HANDLE(read, READ, ssize_t, (int handle, void *data, size_t size), (handle, data, size))
SICK_HANDLE(pread, READ, ssize_t, (int handle, void *data, size_t size, off_t at), (handle, data, size, at))
SICK_HANDLE(pread64, READ, ssize_t, (int handle, void *data, size_t size, off64_t at), (handle, data, size, at))
SICK_HANDLE(readv, READ, ssize_t, (int handle, const struct iovec *data, int count), (handle, data, count))

int rename(const char *from, const char *to)
{
    NEXT(rename);
    return is_sick_at(RENAME, AT_FDCWD, to) ? -1 : next(from, to);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    NEXT(renameat);
    return is_sick_at(RENAME, to_folder, to) ? -1 : next(from_folder, from, to_folder, to);
}

int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned int flags)
{
    NEXT(renameat2);
    return is_sick_at(RENAME, to_folder, to) ? -1 : next(from_folder, from, to_folder, to, flags);
}

int link(const char *from, const char *to)
{
    NEXT(link);
    return is_sick_at(LINK, AT_FDCWD, to) ? -1 : next(from, to);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    NEXT(linkat);
    return is_sick_at(LINK, to_folder, to) ? -1 : next(from_folder, from, to_folder, to, flags);
}

int unlink(const char *path)
{
    NEXT(unlink);
    return is_sick_at(UNLINK, AT_FDCWD, path) ? -1 : next(path);
}

int unlinkat(int folder, const char *path, int flags)
{
    NEXT(unlinkat);
    return is_sick_at(UNLINK, folder, path) ? -1 : next(folder, path, flags);
}

int remove(const char *path)
{
    NEXT(remove);
    return is_sick_at(UNLINK, AT_FDCWD, path) ? -1 : next(path);
}
