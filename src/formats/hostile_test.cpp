// Files that strangers send, and what becomes of files when a process ends: each was a crash, a hang or a loss.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "src/common/sanitized.h"
#include "src/formats/file_lock.h"
#include "src/formats/json_text.h"
#include "src/formats/mapping_guard.h"
#include "src/formats/pickle.h"
#include "src/formats/safetensors.h"
#include "src/formats/temporary_paths.h"
#include "src/formats/test_support.h"

namespace twinbench {
namespace {

TEST(JsonText, FaultsAreNamedAndNestingIsBounded) {
  EXPECT_EQ(json_fault(R"({"a": [1, 2.5, null, "x"], "b": {"a": true}})"), "");
  EXPECT_EQ(json_fault(std::string(64, '[') + std::string(64, ']')), "");
  EXPECT_NE(json_fault(std::string(65, '[') + std::string(65, ']')).find("deep"), std::string::npos);
  for (const std::string& text : {std::string(1'000'000, '['), std::string("{\"a\":[") + std::string(100'000, '[')})
    EXPECT_NE(json_fault(text).find("deep"), std::string::npos);
  for (const char* text : {"", "{", "nan", "1e999", "{\"a\":1}x", "\"\\ud800\"", "\"\xFF\"", "[1,]"})
    EXPECT_NE(json_fault(text).find("not JSON"), std::string::npos) << text;
  EXPECT_NE(json_fault(R"({"c":1,"b":{"a":1,"a":2}})").find("the key b a appears twice"), std::string::npos);
  EXPECT_EQ(json_fault(R"({"a":{"a":1},"b":{"a":2}})"), "");
}

TEST(JsonText, WholeNumbersThatACountDoesNotHoldAreNamed) {
  const std::string most = R"({"a":{"b":[9223372036854775807,-9223372036854775808]}})";
  EXPECT_EQ(json_fault(most, kCounts), "");
  for (const char* number :
       {"9223372036854775808", "18446744073709551615", "18446744073709551616", "-9223372036854775809"})
    EXPECT_NE(json_fault(R"({"a":{"b":[)" + std::string(number) + "]}}", kCounts)
                  .find("the number " + std::string(number) + " of a b is beyond"),
              std::string::npos)
        << number;
  EXPECT_EQ(json_fault("18446744073709551615"), "") << "a seed";
  EXPECT_NE(json_fault("18446744073709551616").find("beyond"), std::string::npos);
  EXPECT_EQ(json_fault("[1e300, 18446744073709551616.0]", kCounts), "") << "no whole numbers";
}

TEST(JsonText, AFileIsNamedInEveryError) {
  const TemporaryDirectory directory;
  write_bytes(directory.file("a"), "[");
  EXPECT_EQ(error_of([&] { read_json_file(directory.file("a"), "pins"); }), "bad_file: pins");
  EXPECT_EQ(error_of([&] { read_json_file(directory.file("b"), "pins"); }), "input_output: pins");
  EXPECT_EQ(error_of([&] { read_json_file(directory.path(), "pins"); }), "input_output: pins");
  ASSERT_EQ(mkfifo(directory.file("fifo").c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { read_json_file(directory.file("fifo"), "pins"); }), "input_output: pins");
  write_bytes(directory.file("a"), "[1]");
  EXPECT_EQ(read_json_file(directory.file("a"), "pins").at(0), 1);
  ASSERT_EQ(truncate(directory.file("a").c_str(), off_t{1} << 40), 0);
  EXPECT_EQ(error_of([&] { read_json_file(directory.file("a"), "pins"); }), "out_of_range: pins");
  EXPECT_EQ(error_of([&] { MappedFile file(directory.file("a")); }), "bad_file: " + directory.file("a"));
}

std::string safetensors_bytes(const std::string& header, std::size_t data) {
  std::string bytes;
  append_little(bytes, static_cast<std::uint64_t>(header.size()));
  return bytes + header + std::string(data, '\0');
}

TEST(TextFile, LinesOfAFileThatMayBeMissing) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("lines");
  using Lines = std::vector<std::string>;
  EXPECT_EQ(lines_if_any(path, "lines"), Lines{});
  for (const auto& [text, lines] : std::vector<std::pair<std::string, Lines>>{
           {"", {}}, {"\n", {""}}, {"a", {"a"}}, {"a\nb\n", {"a", "b"}}, {"a\n\nb", {"a", "", "b"}}}) {
    write_bytes(path, text);
    EXPECT_EQ(lines_if_any(path, "lines"), lines) << text;
  }
  EXPECT_EQ(error_of([&] { lines_if_any(directory.path(), "lines"); }), "input_output: lines");
}

TEST(HostileSafetensors, DeepEntriesAreAnError) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  for (const std::string& header :
       {R"({"a":{"dtype":"F32","data_offsets":[0,4],"shape":)" + deep + "}}", R"({"a":)" + deep + "}"})
    EXPECT_EQ(error_of([&] { parse_safetensors(as_bytes(safetensors_bytes(header, 4))); }),
              "corrupt: safetensors header");
}

TEST(HostileSafetensors, EightyThousandTensorsAreReadAtOnceAndNotListed) {
  std::string header;
  for (int i = 0; i < 80'000; ++i)
    header += (i == 0 ? "{" : ",") + ("\"t" + std::to_string(i)) + R"(":{"dtype":"U8","shape":[1],"data_offsets":[)" +
              std::to_string(i) + "," + std::to_string(i + 1) + "]}";
  const std::string bytes = safetensors_bytes(header + "}", 80'000);
#if defined(__SANITIZE_ADDRESS__)
  constexpr int kMost_s = 60;
#else
  constexpr int kMost_s = 10;  // was more than a minute
#endif
  const auto began = std::chrono::steady_clock::now();
  const auto contents = parse_safetensors(as_bytes(bytes));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(kMost_s));
  EXPECT_EQ(contents.tensors.size(), 80'000u);
  try {
    contents.at("absent");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_LT(std::string(error.what()).size(), 1000u);
  }
}

TEST(HostilePickle, OneOpcodeAgainAndAgainIsBounded) {
  const auto with = [](const std::string& begin, const std::string& again) {
    std::string bytes = "\x80\x02" + begin;
    bytes.reserve(bytes.size() + again.size() * 4'100'000);
    for (int i = 0; i < 4'100'000; ++i) bytes += again;
    return error_of([&] { Pickle pickle(as_bytes(bytes)); });
  };
  EXPECT_EQ(with("", "("), "out_of_range: pickle");
  EXPECT_EQ(with("Nq" + std::string(1, '\0'), "h" + std::string(1, '\0')), "out_of_range: pickle");
}

// What the child, made by `work`, ended with; it tells through the pipe when it has come so far.
struct Ended {
  int status = 0;
  std::string told;
};
template <class Work>
Ended child_sent(int number, const Work& work) {
  int ready[2], told[2];
  EXPECT_EQ(pipe(ready) + pipe(told), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(told[1], STDERR_FILENO);
    work([&] { EXPECT_EQ(write(ready[1], "r", 1), 1); });
    _exit(0);
  }
  close(ready[1]);
  close(told[1]);
  char byte = 0;
  EXPECT_EQ(read(ready[0], &byte, 1), 1);
  if (number != 0) kill(child, number);
  Ended ended;
  EXPECT_EQ(waitpid(child, &ended.status, 0), child);
  char text[1024];
  for (ssize_t count; (count = read(told[0], text, sizeof text)) > 0;)
    ended.told.append(text, static_cast<std::size_t>(count));
  close(ready[0]);
  close(told[0]);
  return ended;
}

TEST(TemporaryPaths, ASignalHandlerRemovesThemAndAChildDoesNot) {
  const TemporaryDirectory directory;
  const auto wait_with_files = [&](const auto& ready) {
    const AtomicFile file(directory.file("out"));
    setenv("TMPDIR", directory.path().c_str(), 1);
    const TemporaryDirectory folder;
    write_bytes(folder.file("held"), "x");
    if (fork() == 0) {
      remove_temporary_paths();  // they are its parent's
      _exit(0);
    }
    wait(nullptr);
    std::signal(SIGTERM, [](int) {
      remove_temporary_paths();
      _exit(7);
    });
    if (files_in(directory.path()) != 2) _exit(8);
    ready();
    for (;;) pause();
  };
  const Ended ended = child_sent(SIGTERM, wait_with_files);
  EXPECT_TRUE(WIFEXITED(ended.status));
  EXPECT_EQ(WEXITSTATUS(ended.status), 7);
  EXPECT_EQ(files_in(directory.path()), 0u);
}

TEST(MappingGuard, AFileThatBecomesShorterEndsTheProcessByName) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("large");
  write_bytes(path, std::string(1 << 20, 'x'));
  const Ended ended = child_sent(0, [&](const auto& ready) {
    end_on_shortened_files(2);
    const MappedFile file(path);
    if (truncate(path.c_str(), 0) != 0) _exit(9);
    ready();
    volatile std::uint8_t last = file.bytes().back();
    static_cast<void>(last);
  });
  ASSERT_TRUE(WIFEXITED(ended.status)) << WTERMSIG(ended.status);
  EXPECT_EQ(WEXITSTATUS(ended.status), 2);
  EXPECT_NE(ended.told.find("it became shorter"), std::string::npos);
}

TEST(MappingGuard, AnotherBusErrorIsWhatItWas) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer has this signal";
  const Ended ended = child_sent(0, [&](const auto& ready) {
    end_on_shortened_files(2);
    ready();
    raise(SIGBUS);
    raise(SIGBUS);
  });
  EXPECT_TRUE(WIFSIGNALED(ended.status));
}

TEST(FileLock, OneAtATimeAndNothingIsLeft) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("pins");
  write_bytes(path, "0");
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 4; ++writer)
    writers.emplace_back([&] {
      for (int i = 0; i < 25; ++i) {
        const FileLock lock(path);
        write_bytes(path, std::to_string(std::stoi(read_bytes(path)) + 1));
      }
    });
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(read_bytes(path), "100");
  EXPECT_EQ(files_in(directory.path()), 1u);
  EXPECT_EQ(error_of([] { FileLock lock("/dev/null/pins"); }), "input_output: /dev/null");
}

}  // namespace
}  // namespace twinbench
