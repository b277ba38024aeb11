// Makes the system refuse, for LD_PRELOAD. TWINBENCH_INJECT=CALL:N:WHAT: the N-th CALL fails once, with errno WHAT, in
// whichever of the program's processes it comes (they count together); "count" writes how many there were of each. From
// main's first action on: it ignores SIGXFSZ. WHAT below 0: no failure, but that signal, and at once: just before the
// call, or just after one that has made a file or folder.
// CALL: a function of the list below; alloc, any allocation, which is refused; wall and steady, a reading of that
// clock, which from then on is WHAT seconds ahead.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CALLS(X)                                                                                                \
  X(open) X(read) X(write) X(pipe_write) X(writev) X(close) X(fsync) X(rename) X(mkostemp) X(mkdtemp) X(opendir) X(pipe2) X(fork) \
  X(socketpair) X(poll) X(wait4) X(pthread_create) X(alloc) X(wall) X(steady)
#define NUMBER(call) k_##call,
#define NAME(call) #call,
enum { CALLS(NUMBER) kCalls };
static const char* const names[kCalls] = {CALLS(NAME)};

static long* counts;  // shared with the processes that are forked
static int wanted = -1, failure;
static long nth;

static void arm(void) {
  const char* text = getenv("TWINBENCH_INJECT");
  char call[16] = "";
  if (!text || counts) return;
  if (sscanf(text, "%15[^:]:%ld:%d", call, &nth, &failure) == 3)
    for (int i = 0; i < kCalls; ++i)
      if (strcmp(call, names[i]) == 0) wanted = i;
  void* shared = mmap(NULL, kCalls * sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  counts = shared == MAP_FAILED ? NULL : shared;
}

static long count(int call) { return counts ? __atomic_add_fetch(&counts[call], 1, __ATOMIC_RELAXED) : 0; }

static __thread int signal_after;
static void strike(void) {
  const int number = signal_after;
  signal_after = 0;
  if (number) raise(number);
}

static int fails(int call) {
  const long now = count(call);
  if (!now || call != wanted || now != nth) return 0;
  if (failure < 0) {
    signal_after = -failure;
    if (call != k_mkostemp && call != k_mkdtemp) strike();
    return 0;
  }
  errno = failure;
  return 1;
}

__attribute__((destructor)) static void tell(void) {
  const char* text = getenv("TWINBENCH_INJECT");
  if (!counts || !text || strcmp(text, "count") != 0) return;
  long* const mine = counts;
  counts = NULL;
  for (int i = 0; i < kCalls; ++i) fprintf(stderr, "injectable %s %ld\n", names[i], mine[i]);
}

#define NEXT(type, name, ...)              \
  static type (*next)(__VA_ARGS__) = NULL; \
  if (!next) next = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

typedef void (*handler)(int);
handler signal(int number, handler to) {
  NEXT(handler, "signal", int, handler);
  if (number == SIGXFSZ) arm();
  return next(number, to);
}

// LibTorch's own look at the processor checks nothing and crashes where the system refuses it: not ours to judge.
static char foreign[1024];
static int of_processor(const char* path) {
  return strncmp(path, "/sys/", 5) == 0 || strcmp(path, "/proc/cpuinfo") == 0;
}
static int noted(int file, int is_foreign) {
  if (file >= 0 && file < (int)sizeof foreign) foreign[file] = (char)is_foreign;
  return file;
}
static int is_foreign(int file) { return file >= 0 && file < (int)sizeof foreign && foreign[file]; }

#define OPEN(name)                                                                 \
  int name(const char* path, int flags, ...) {                                     \
    NEXT(int, #name, const char*, int, ...);                                       \
    va_list rest;                                                                  \
    va_start(rest, flags);                                                         \
    const mode_t mode = va_arg(rest, mode_t);                                      \
    va_end(rest);                                                                  \
    const int processor = of_processor(path);                                      \
    return !processor && fails(k_open) ? -1 : noted(next(path, flags, mode), processor); \
  }
OPEN(open)
OPEN(open64)

#define FOPEN(name)                                                     \
  FILE* name(const char* path, const char* mode) {                      \
    NEXT(FILE*, #name, const char*, const char*);                       \
    return !of_processor(path) && fails(k_open) ? NULL : next(path, mode); \
  }
FOPEN(fopen)
FOPEN(fopen64)

ssize_t read(int file, void* into, size_t bytes) {
  NEXT(ssize_t, "read", int, void*, size_t);
  return !is_foreign(file) && fails(k_read) ? -1 : next(file, into, bytes);
}

// To a pipe it is another call: that is never full for good, and has no disk that could break.
ssize_t write(int file, const void* from, size_t bytes) {
  NEXT(ssize_t, "write", int, const void*, size_t);
  struct stat status;
  const int to_pipe = fstat(file, &status) == 0 && S_ISFIFO(status.st_mode);
  return fails(to_pipe ? k_pipe_write : k_write) ? -1 : next(file, from, bytes);
}

// The rest as they are: FAILING(result where it fails, its type, name, parameters, arguments).
#define FAILING(bad, type, name, parameters, ...)              \
  type name parameters {                                       \
    static type(*next) parameters = NULL;                      \
    if (!next) next = (type(*) parameters)dlsym(RTLD_NEXT, #name); \
    if (fails(k_##name)) return bad;                           \
    type const result = next(__VA_ARGS__);                     \
    strike();                                                  \
    return result;                                             \
  }
FAILING(-1, ssize_t, writev, (int file, const struct iovec* parts, int number), file, parts, number)
FAILING(-1, int, fsync, (int file), file)
FAILING(-1, int, rename, (const char* from, const char* to), from, to)
FAILING(-1, int, mkostemp, (char* pattern, int flags), pattern, flags)
FAILING(NULL, char*, mkdtemp, (char* pattern), pattern)
FAILING(NULL, DIR*, opendir, (const char* path), path)
FAILING(-1, int, pipe2, (int ends[2], int flags), ends, flags)
FAILING(-1, pid_t, fork, (void), )
FAILING(-1, int, socketpair, (int domain, int type, int protocol, int ends[2]), domain, type, protocol, ends)
FAILING(-1, int, poll, (struct pollfd* files, nfds_t number, int wait_ms), files, number, wait_ms)
FAILING(-1, pid_t, wait4, (pid_t child, int* status, int options, struct rusage* usage), child, status, options, usage)
// It returns its error; the program's own, in front of it, calls this one.
FAILING(failure, int, pthread_create, (pthread_t * thread, const pthread_attr_t* how, void* (*work)(void*), void* with),
        thread, how, work, with)

// As Linux does it: the file is closed all the same.
int close(int file) {
  NEXT(int, "close", int);
  const int bad = fails(k_close), error = errno, result = next(file);
  if (!bad) return result;
  errno = error;
  return -1;
}

// The program has a malloc of its own, which counts its calls (harness/counters/process_calls.cpp) and comes before any
// library's: these are what it calls.
void* __libc_malloc(size_t bytes) {
  NEXT(void*, "__libc_malloc", size_t);
  return fails(k_alloc) ? NULL : next(bytes);
}
void* __libc_calloc(size_t number, size_t bytes) {
  NEXT(void*, "__libc_calloc", size_t, size_t);
  return fails(k_alloc) ? NULL : next(number, bytes);
}
void* __libc_realloc(void* block, size_t bytes) {
  NEXT(void*, "__libc_realloc", void*, size_t);
  return fails(k_alloc) ? NULL : next(block, bytes);
}
void* __libc_memalign(size_t alignment, size_t bytes) {
  NEXT(void*, "__libc_memalign", size_t, size_t);
  return fails(k_alloc) ? NULL : next(alignment, bytes);
}

static long ahead(int clock) {
  const long now = count(clock);
  return now && clock == wanted && now >= nth ? failure : 0;
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  NEXT(int, "clock_gettime", clockid_t, struct timespec*);
  const int result = next(clock, time);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) time->tv_sec += ahead(k_wall);
  if (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_MONOTONIC_COARSE)
    time->tv_sec += ahead(k_steady);
  return result;
}
int gettimeofday(struct timeval* time, void* zone) {
  NEXT(int, "gettimeofday", struct timeval*, void*);
  const int result = next(time, zone);
  time->tv_sec += ahead(k_wall);
  return result;
}
time_t time(time_t* into) {
  NEXT(time_t, "time", time_t*);
  const time_t now = next(NULL) + ahead(k_wall);
  if (into) *into = now;
  return now;
}
