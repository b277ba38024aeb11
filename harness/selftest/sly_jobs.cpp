// Planted jobs against the runner: forged and rewritten results, early ends, no end, and what is left running.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "harness/selftest/cases.h"
#include "harness/selftest/row_scale.h"

namespace twinbench::selftest {

namespace {

const char kRight[] = "the right answer";

// A message as the runner's format has it, without the key of this child's seal.
void forge(int descriptor) {
  const std::string body = R"({"kind":"result","value":"the forged answer"})";
  const std::string message = std::string("TWBJ") + static_cast<char>(body.size()) + std::string(3 + 8, '\0') + body;
  if (write(descriptor, message.data(), message.size()) < 0) return;  // not a pipe that takes it
}

int result_descriptor = -1;

SelftestCase job(const std::string& name, const std::string& what, const std::string& caught_by,
                 std::function<nlohmann::json(JobContext&)> work) {
  SelftestCase one{name, what, caught_by, row_scale_component(make<RowScale>), Variant::kOptimized, nullptr, {}};
  one.setting = row_scale_setting(one.component, 1, 1);
  one.job = std::move(work);
  return one;
}

}  // namespace

std::vector<SelftestCase> sly_jobs() {
  return {
      job("forged_result", "writes a result to the descriptor that it inherited", "protocol_error",
          [](JobContext& context) -> nlohmann::json {
            forge(context.descriptor());
            return kRight;
          }),
      job("forged_and_ended", "writes a result to the descriptor that it inherited, and ends", "protocol_error",
          [](JobContext& context) -> nlohmann::json {
            forge(context.descriptor());
            _exit(0);
          }),
      job("early_exit", "ends with code 0 before its result", "protocol_error",
          [](JobContext&) -> nlohmann::json { _exit(0); }),
      job("early_exit_at_exit", "ends with exit(0) before its result, and forges one on the way", "protocol_error",
          [](JobContext& context) -> nlohmann::json {
            result_descriptor = context.descriptor();
            std::atexit([] {
              forge(result_descriptor);
              _exit(0);
            });
            std::quick_exit(0);
          }),
      job("never_ends", "never ends", "timeout",
          [](JobContext&) -> nlohmann::json {
            for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
          }),
      job("crashes", "reads memory that is not there", "crashed",
          [](JobContext&) -> nlohmann::json {
            raise(SIGSEGV);
            return kRight;
          }),
      job("leaves_a_daemon", "leaves a process that forked twice", "error",
          [](JobContext&) -> nlohmann::json {
            if (fork() == 0) {
              if (fork() == 0) {
                alarm(20);
                for (;;) pause();
              }
              _exit(0);
            }
            return kRight;
          }),
      job("rewrites_at_exit", "would rewrite its result at exit, which never comes", "",
          [](JobContext& context) -> nlohmann::json {
            result_descriptor = context.descriptor();
            std::atexit([] { forge(result_descriptor); });
            return kRight;
          }),
      job("returns", "a job that returns", "", [](JobContext&) -> nlohmann::json { return kRight; }),
  };
}

}  // namespace twinbench::selftest
