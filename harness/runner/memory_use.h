// How much memory a process holds, from /proc, and the limits a child sets on itself.
#pragma once

#include <sys/types.h>
#include <cstdint>

namespace twinbench {

// Resident anonymous memory in bytes, shared memory included, mapped files left out. 0 where the process has gone.
std::uint64_t held_bytes(pid_t process);

// Threads of this process; above 1 a fork would copy only one of them, with every lock as it happened to be.
int thread_count();

// Whether any process of that group still lives; zombies do not. Whoever does is stopped: one that forks and ends,
// again and again, would be gone before it is looked at, and its successor not yet there when all were listed.
bool stop_group(pid_t group);

// In the child: no core dump, and a refusal of allocations that lead beyond `bytes` more than now (0: none), so that
// the usual end is std::bad_alloc rather than a kill. RLIMIT_DATA counts private writable mappings only: unlike
// RLIMIT_AS it leaves room for the tens of GB of address space that CUDA reserves. Address-sanitised builds go without
// it: their allocator ends the process instead of throwing.
void limit_memory_of_this_process(std::uint64_t bytes);

// Takes the refusal back, so that there is room to report it.
void lift_memory_limit();

// The `bytes` that limit_memory_of_this_process() was given, also after lift_memory_limit(); 0: none.
std::uint64_t memory_limit_of_this_process();

// What the machine could still give, in bytes.
std::uint64_t available_memory();

}  // namespace twinbench
