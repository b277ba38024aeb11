// What a process does when the system refuses it a thread. Libraries do not expect that: LibTorch waits for ever,
// libgomp ends the process with code 1.
#pragma once

#include <atomic>
#include <string>

namespace twinbench {

// Called with the error in the place of the thread's creation (harness/counters/process_calls.cpp); null: nobody is
// told. May end the process.
inline std::atomic<void (*)(int error)> when_thread_is_refused{nullptr};

// "input_output: threads is 'Resource temporarily unavailable': ...": what to say then.
std::string refused_thread_text(int error);

}  // namespace twinbench
