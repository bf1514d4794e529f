/*
 * Loaded before the C library (LD_PRELOAD), holds whoever is about to give a file the name of a Delta version, by
 * rename or by link, until a test lets it go: "DIR/N.held" names both files, "DIR/N.go" lets it go on.
 *
 * HOLD_COMMITS is DIR. With HOLD_AFTER set, it is held right after that instead: the version stands, and its writer
 * does not know yet. With NO_HARD_LINKS set, every link fails as on a file system that has none.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_MILLISECONDS 60000

static int count = 0;

static int is_version(const char *path)
{
    const char *name = strrchr(path, '/');
    return name != NULL && strstr(path, "/_delta_log/") != NULL && strlen(name) == 26
        && strspn(name + 1, "0123456789") == 20 && strcmp(name + 21, ".json") == 0;
}

static int real_rename(const char *from, const char *to)
{
    int (*next)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
    return next(from, to);
}

static void hold(const char *from, const char *to)
{
    const char *folder = getenv("HOLD_COMMITS");
    char held[4096], half[4096], go[4096];
    if (folder == NULL || !is_version(to))
        return;
    int number = __sync_add_and_fetch(&count, 1);
    snprintf(held, sizeof held, "%s/%d-%d.held", folder, getpid(), number);
    snprintf(half, sizeof half, "%s/%d-%d.half", folder, getpid(), number);
    snprintf(go, sizeof go, "%s/%d-%d.go", folder, getpid(), number);
    FILE *file = fopen(half, "w");
    if (file == NULL)
        return;
    fprintf(file, "%s\n%s\n", from, to);
    fclose(file);
    real_rename(half, held);
    for (int waited = 0; waited < WAIT_MILLISECONDS && access(go, F_OK) != 0; waited += 5)
        usleep(5000);
}

static void hold_before(const char *from, const char *to)
{
    if (getenv("HOLD_AFTER") == NULL)
        hold(from, to);
}

static int hold_after(int result, const char *from, const char *to)
{
    int reason = errno;
    if (result == 0 && getenv("HOLD_AFTER") != NULL)
        hold(from, to);
    errno = reason;
    return result;
}

int rename(const char *from, const char *to)
{
    hold_before(from, to);
    return hold_after(real_rename(from, to), from, to);
}

int link(const char *from, const char *to)
{
    int (*next)(const char *, const char *) = dlsym(RTLD_NEXT, "link");
    if (getenv("NO_HARD_LINKS") != NULL) {
        errno = EPERM;
        return -1;
    }
    hold_before(from, to);
    return hold_after(next(from, to), from, to);
}
