// Blocking writes, and reads that give up.
#include "harness/gpu/pipe_text.h"

#include <poll.h>
#include <unistd.h>

#include <array>

namespace twinbench {

void write_all(int descriptor, const std::string& text) {
  for (std::size_t written = 0; written < text.size();) {
    const ssize_t count = write(descriptor, text.data() + written, text.size() - written);
    if (count <= 0) return;
    written += static_cast<std::size_t>(count);
  }
}

std::string read_all(int descriptor, double patience_s) {
  std::string text;
  std::array<char, 4096> buffer;
  pollfd waiting{descriptor, POLLIN, 0};
  while (poll(&waiting, 1, static_cast<int>(patience_s * 1e3)) > 0) {
    const ssize_t count = read(descriptor, buffer.data(), buffer.size());
    if (count <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return text;
}

}  // namespace twinbench
