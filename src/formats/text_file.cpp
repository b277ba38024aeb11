// Reading by POSIX calls: a stream would wait for whoever writes to a FIFO.
#include "src/formats/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "src/common/error.h"

namespace twinbench {
namespace {

constexpr off_t kLargestText = off_t{1} << 30;

struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

}  // namespace

std::string read_text_file(const std::string& path, const std::string& what) {
  const auto refused = [&](const std::string& why) { return Error(ErrorKind::kInputOutput, what, path, why); };
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat status {};
  if (file.number < 0 || ::fstat(file.number, &status) != 0)
    throw refused(std::string("it cannot be read: ") + std::strerror(errno));
  if (!S_ISREG(status.st_mode)) throw refused("not a regular file; give one");
  if (status.st_size > kLargestText)
    throw Error(ErrorKind::kOutOfRange, what, path,
                "it has " + std::to_string(status.st_size) + " bytes; at most 1 GiB is read");
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t held = 0;
  while (held < text.size()) {
    const ssize_t count = ::read(file.number, text.data() + held, text.size() - held);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw refused(std::string("it cannot be read: ") + std::strerror(errno));
    if (count == 0) break;  // it became shorter meanwhile
    held += static_cast<std::size_t>(count);
  }
  text.resize(held);
  return text;
}

std::vector<std::string> lines_if_any(const std::string& path, const std::string& what) {
  std::vector<std::string> lines;
  if (::access(path.c_str(), F_OK) != 0 && (errno == ENOENT || errno == ENOTDIR)) return lines;
  const std::string text = read_text_file(path, what);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace twinbench
