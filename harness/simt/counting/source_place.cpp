// Debug information through GCC's libbacktrace, which comes with the compiler.
#include "harness/simt/counting/source_place.h"

#include <backtrace.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <map>
#include <new>
#include <string_view>
#include <system_error>
#include <vector>

namespace twinbench::kernels::simt {
namespace {

struct Frame {
  std::string file;
  int line;
};

// From the repository's root on, however the compiler was told of it.
std::string from_root(const char* path) {
  const std::string_view text = path;
  for (const std::string_view top : {"kernels/", "harness/", "src/"}) {
    const std::size_t at = text.rfind(top);
    if (at != std::string_view::npos && (at == 0 || text[at - 1] == '/')) return std::string(text.substr(at));
  }
  return std::string(text);
}

struct Found {
  std::vector<Frame> frames;  // innermost first
  int refused = 0;            // errno of the system's first refusal; libbacktrace also tells of code without lines
};

void note_refusal(void* found, const char*, int error) {
  int& refused = static_cast<Found*>(found)->refused;
  for (const int one : {ENOMEM, EIO, EMFILE, ENFILE})
    if (refused == 0 && error == one) refused = error;
}

std::vector<Frame> frames_of(const void* return_address) {
  Found found;
  static backtrace_state* const state = backtrace_create_state(nullptr, 0, note_refusal, &found);
  if (state != nullptr)
    backtrace_pcinfo(
        state, reinterpret_cast<std::uintptr_t>(return_address) - 1,
        [](void* into, std::uintptr_t, const char* file, int line, const char*) {
          if (file != nullptr) static_cast<Found*>(into)->frames.push_back({from_root(file), line});
          return 0;
        },
        note_refusal, &found);
  if (found.refused == ENOMEM) throw std::bad_alloc();
  if (found.refused != 0)
    throw std::system_error(found.refused, std::system_category(), "debug information");  // else: an unknown place
  return found.frames;
}

bool starts_with_any(const std::string& file, std::initializer_list<const char*> folders) {
  for (const char* folder : folders)
    if (file.rfind(folder, 0) == 0) return true;
  return false;
}

SourcePlace look_up(const void* return_address) {
  // The layer's own frames say nothing: what stands in for a card, and the wrappers around it.
  std::vector<Frame> frames;
  for (Frame& frame : frames_of(return_address)) {
    const bool kernel = starts_with_any(frame.file, {"harness/simt/counting/testing/planted", "harness/simt/example"});
    if (kernel || !starts_with_any(frame.file, {"harness/simt/", "kernels/common/simt", "/usr/"}))
      frames.push_back(std::move(frame));
  }
  if (frames.empty()) return {};
  const Frame* own = &frames.front();
  for (const Frame& frame : frames) {
    if (starts_with_any(frame.file, {"kernels/common/", "src/"})) continue;
    own = &frame;
    break;
  }
  if (own == &frames.front()) return {own->file, own->line, "", 0};
  return {own->file, own->line, frames.front().file, frames.front().line};
}

}  // namespace

std::string SourcePlace::text() const {
  if (file.empty()) return "unknown place";
  std::string result = file + ":" + std::to_string(line);
  if (!through_file.empty()) result += " through " + through_file + ":" + std::to_string(through_line);
  return result;
}

SourcePlace place_of(const void* return_address) {
  static thread_local std::map<const void*, SourcePlace> known;
  const auto found = known.find(return_address);
  if (found != known.end()) return found->second;
  return known.emplace(return_address, look_up(return_address)).first->second;
}

}  // namespace twinbench::kernels::simt
