// Makes the system refuse: for LD_PRELOAD. TWINBENCH_INJECT=CALL:N:ERRNO lets the N-th CALL fail once, in whichever
// process it comes; "count" writes how many there were of each, from that of main's first action on (it ignores SIGXFSZ).
// CALL: open, read, write, fsync, rename, pipe2, fork. Not malloc: the program counts its own calls of it by a malloc of
// its own (harness/counters/process_calls.cpp), which comes before any library's.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { kOpen, kRead, kWrite, kFsync, kRename, kPipe2, kFork, kCalls };
static const char* const names[kCalls] = {"open", "read", "write", "fsync", "rename", "pipe2", "fork"};
static long counts[kCalls];
static int armed, wanted = -1, failure;
static long nth;

static void arm(void) {
  const char* text = getenv("TWINBENCH_INJECT");
  char call[16] = "";
  if (text && sscanf(text, "%15[^:]:%ld:%d", call, &nth, &failure) == 3)
    for (int i = 0; i < kCalls; ++i)
      if (strcmp(call, names[i]) == 0) wanted = i;
  armed = text != NULL;
}

static int fails(int call) {
  if (!armed) return 0;
  const long now = __atomic_add_fetch(&counts[call], 1, __ATOMIC_RELAXED);
  if (call != wanted || now != nth) return 0;
  errno = failure;
  return 1;
}

__attribute__((destructor)) static void tell(void) {
  const char* text = getenv("TWINBENCH_INJECT");
  if (!armed || !text || strcmp(text, "count") != 0) return;
  armed = 0;
  for (int i = 0; i < kCalls; ++i) fprintf(stderr, "injectable %s %ld\n", names[i], counts[i]);
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

#define OPEN(name)                                             \
  int name(const char* path, int flags, ...) {                 \
    NEXT(int, #name, const char*, int, ...);                   \
    va_list rest;                                              \
    va_start(rest, flags);                                     \
    const mode_t mode = va_arg(rest, mode_t);                  \
    va_end(rest);                                              \
    if (of_processor(path)) return noted(next(path, flags, mode), 1); \
    return fails(kOpen) ? -1 : noted(next(path, flags, mode), 0);        \
  }
OPEN(open)
OPEN(open64)

FILE* fopen(const char* path, const char* mode) {
  NEXT(FILE*, "fopen", const char*, const char*);
  return !of_processor(path) && fails(kOpen) ? NULL : next(path, mode);
}
FILE* fopen64(const char* path, const char* mode) {
  NEXT(FILE*, "fopen64", const char*, const char*);
  return !of_processor(path) && fails(kOpen) ? NULL : next(path, mode);
}
ssize_t read(int file, void* into, size_t bytes) {
  NEXT(ssize_t, "read", int, void*, size_t);
  const int other = file >= 0 && file < (int)sizeof foreign && foreign[file];
  return !other && fails(kRead) ? -1 : next(file, into, bytes);
}
ssize_t write(int file, const void* from, size_t bytes) {
  NEXT(ssize_t, "write", int, const void*, size_t);
  return fails(kWrite) ? -1 : next(file, from, bytes);
}
int fsync(int file) {
  NEXT(int, "fsync", int);
  return fails(kFsync) ? -1 : next(file);
}
int rename(const char* from, const char* to) {
  NEXT(int, "rename", const char*, const char*);
  return fails(kRename) ? -1 : next(from, to);
}
int pipe2(int ends[2], int flags) {
  NEXT(int, "pipe2", int*, int);
  return fails(kPipe2) ? -1 : next(ends, flags);
}
pid_t fork(void) {
  NEXT(pid_t, "fork", void);
  return fails(kFork) ? -1 : next();
}
