// Guard pages and the fault handler that turns touching them into findings.
#include "harness/simt/guarded_buffer.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <new>

namespace twinbench::kernels::simt {
namespace {

constexpr unsigned char kSlackPattern = 0xa5;
constexpr int kMostFaults = 16;

std::array<GuardFault, kMostFaults> g_faults;
std::atomic<int> g_fault_count{0};
std::atomic<int> g_thread{-1};
struct sigaction g_previous;

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

std::size_t whole_pages(std::size_t bytes) {
  const std::size_t page = page_bytes();
  return (bytes + page - 1) / page * page;
}

void handle_fault(int signal, siginfo_t* information, void* machine_context) {
  for (GuardedMemory* memory : guarded_memory()) {
    if (!memory->holds(information->si_addr) || !memory->open(information->si_addr)) continue;
    const int slot = g_fault_count.fetch_add(1);
    if (slot < kMostFaults) {
      g_faults[static_cast<std::size_t>(slot)] = {memory,
                                                  static_cast<unsigned char*>(information->si_addr) - memory->data(),
                                                  was_write(machine_context), g_thread.load()};
    }
    return;  // the access is repeated and now succeeds
  }
  pass_on_fault(g_previous, signal, information, machine_context);
}

}  // namespace

std::vector<GuardedMemory*>& guarded_memory() {
  static std::vector<GuardedMemory*> all;
  return all;
}

bool was_write([[maybe_unused]] void* machine_context) {
#if defined(__x86_64__)
  return (static_cast<ucontext_t*>(machine_context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
  return false;
#endif
}

void pass_on_fault(const struct sigaction& previous, int signal, siginfo_t* information, void* machine_context) {
  if ((previous.sa_flags & SA_SIGINFO) != 0 && previous.sa_sigaction != nullptr) {
    previous.sa_sigaction(signal, information, machine_context);
  } else {
    sigaction(signal, &previous, nullptr);
  }
}

GuardedMemory::GuardedMemory(std::size_t bytes, std::size_t alignment, std::string name, std::size_t guard_bytes)
    : bytes_(bytes), guard_bytes_(whole_pages(guard_bytes)), middle_bytes_(whole_pages(bytes)), name_(std::move(name)) {
  void* mapping =
      mmap(nullptr, middle_bytes_ + 2 * guard_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  mapping_ = static_cast<unsigned char*>(mapping);
  if (middle_bytes_ > 0) mprotect(mapping_ + guard_bytes_, middle_bytes_, PROT_READ | PROT_WRITE);
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  data_ = mapping_ + guard_bytes_ + middle_bytes_ - std::min(rounded, middle_bytes_);
  // Untouched pages of a huge buffer stay unmapped: only buffers of ordinary size get the pattern.
  if (bytes <= (std::size_t{1} << 28)) std::memset(data_, 0xff, bytes_);
  restore_slack();
  guarded_memory().push_back(this);
}

GuardedMemory::~GuardedMemory() {
  std::erase(guarded_memory(), this);
  munmap(mapping_, middle_bytes_ + 2 * guard_bytes_);
}

bool GuardedMemory::slack_is_intact() {
  let_in(true);
  // Every byte equals the one before it: compared as a whole, as this is done for every buffer after every block.
  const auto is_pattern = [](const unsigned char* begin, const unsigned char* end) {
    return begin == end ||
           (*begin == kSlackPattern && std::memcmp(begin, begin + 1, static_cast<std::size_t>(end - begin - 1)) == 0);
  };
  const unsigned char* middle = mapping_ + guard_bytes_;
  return is_pattern(middle, data_) && is_pattern(data_ + bytes_, middle + middle_bytes_);
}

void GuardedMemory::restore_slack() {
  let_in(true);
  unsigned char* middle = mapping_ + guard_bytes_;
  std::memset(middle, kSlackPattern, static_cast<std::size_t>(data_ - middle));
  std::memset(data_ + bytes_, kSlackPattern, static_cast<std::size_t>(middle + middle_bytes_ - (data_ + bytes_)));
}

bool GuardedMemory::holds(const void* address) const {
  const auto* byte = static_cast<const unsigned char*>(address);
  return byte >= mapping_ && byte < mapping_ + middle_bytes_ + 2 * guard_bytes_;
}

bool GuardedMemory::open(const void* address) {
  const auto* byte = static_cast<const unsigned char*>(address);
  const unsigned char* middle = mapping_ + guard_bytes_;
  if (byte >= middle && byte < middle + middle_bytes_) return false;
  const std::size_t page = page_bytes();
  unsigned char* start = mapping_ + static_cast<std::size_t>(byte - mapping_) / page * page;
  return mprotect(start, page, PROT_READ | PROT_WRITE) == 0;
}

void GuardedMemory::close() {
  mprotect(mapping_, guard_bytes_, PROT_NONE);
  mprotect(mapping_ + guard_bytes_ + middle_bytes_, guard_bytes_, PROT_NONE);
}

bool GuardedMemory::holds_data(const void* address) const {
  const auto* byte = static_cast<const unsigned char*>(address);
  return byte >= mapping_ + guard_bytes_ && byte < mapping_ + guard_bytes_ + middle_bytes_;
}

void GuardedMemory::let_in(bool open) {
  if (closed_ != open || middle_bytes_ == 0) return;
  if (mprotect(mapping_ + guard_bytes_, middle_bytes_, open ? PROT_READ | PROT_WRITE : PROT_NONE) == 0) closed_ = !open;
}

GuardWatch::GuardWatch() {
  g_fault_count = 0;
  struct sigaction action {};
  action.sa_sigaction = handle_fault;
  action.sa_flags = SA_SIGINFO;  // on the fiber's own stack
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &g_previous);
}

GuardWatch::~GuardWatch() { sigaction(SIGSEGV, &g_previous, nullptr); }

// The handler runs on the thread that faults: no order with others is needed, and a switch of fibers must be cheap.
void GuardWatch::set_thread(int thread) { g_thread.store(thread, std::memory_order_relaxed); }

std::vector<GuardFault> GuardWatch::take_faults() {
  const int count = std::min(g_fault_count.exchange(0), kMostFaults);
  std::vector<GuardFault> faults(g_faults.begin(), g_faults.begin() + count);
  for (GuardedMemory* memory : guarded_memory()) {
    if (!memory->slack_is_intact()) {
      faults.push_back({memory, static_cast<std::int64_t>(memory->bytes()), true, -1});
      memory->restore_slack();
    }
    if (std::any_of(faults.begin(), faults.end(), [&](const GuardFault& f) { return f.memory == memory; }))
      memory->close();
  }
  return faults;
}

}  // namespace twinbench::kernels::simt
