// Guarded memory without access rights, and the fault handler that notes who comes.
#include "harness/simt/host_access.h"

#include <signal.h>

#include <cstring>

#include "harness/simt/guarded_buffer.h"
#include "src/common/device_turn.h"

namespace twinbench::kernels::simt {
namespace {

// Read and written by the signal handler, on the thread that faults.
struct {
  bool seen = false, write = false;
  char name[64] = {};
  const void* address = nullptr;
  std::int64_t offset = 0;
} g_first;
int g_turns = 0;
struct sigaction g_before_watch;

void handle_access(int signal, siginfo_t* information, void* machine_context) {
  for (GuardedMemory* memory : guarded_memory()) {
    if (!memory->is_closed() || !memory->holds_data(information->si_addr)) continue;
    if (!g_first.seen) {
      g_first.seen = true;
      g_first.write = was_write(machine_context);
      g_first.address = information->si_addr;
      g_first.offset = static_cast<unsigned char*>(information->si_addr) - memory->data();
      std::strncpy(g_first.name, memory->name().c_str(), sizeof g_first.name - 1);
    }
    memory->let_in(true);
    return;  // the access is repeated and now succeeds
  }
  pass_on_fault(g_before_watch, signal, information, machine_context);
}

void let_in_all(bool open) {
  for (GuardedMemory* memory : guarded_memory()) memory->let_in(open);
}

void take_turn(bool begins) {
  if (begins && g_turns++ == 0) let_in_all(true);
  if (!begins && --g_turns == 0) let_in_all(false);
}

}  // namespace

HostAccessWatch::HostAccessWatch() {
  g_first = {};
  g_turns = 0;
  struct sigaction action {};
  action.sa_sigaction = handle_access;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &g_before_watch);
  let_in_all(false);
  device_turn_observer = take_turn;
}

HostAccessWatch::~HostAccessWatch() {
  device_turn_observer = nullptr;
  let_in_all(true);
  sigaction(SIGSEGV, &g_before_watch, nullptr);
}

HostAccessWatch::Access HostAccessWatch::first() const {
  if (!g_first.seen) return {};
  return {g_first.name, g_first.address, g_first.offset, g_first.write};
}

}  // namespace twinbench::kernels::simt
