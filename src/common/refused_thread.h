// What a process does when the system refuses it a thread. Libraries do not expect that: LibTorch waits for ever,
// libgomp ends the process with code 1.
#pragma once

#include <atomic>

namespace twinbench {

// Called with the error in the place of the thread's creation (harness/counters/process_calls.cpp); null: nobody is
// told. May end the process.
inline std::atomic<void (*)(int error)> when_thread_is_refused{nullptr};

}  // namespace twinbench
