// Progress lines on terminals and in logs, tables, and names that are nearly right.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "harness/terminal/progress.h"
#include "harness/terminal/style.h"
#include "harness/terminal/table.h"
#include "src/common/error.h"

namespace twinbench {
namespace {

struct Watch {
  double seconds = 0;
  ProgressOptions options(bool is_terminal, std::size_t width = 60) {
    ProgressOptions options;
    options.style = {is_terminal, false, width};
    options.seconds = [this] { return seconds; };
    return options;
  }
};

TEST(Progress, ALogGetsOneLineEveryTenSecondsAndTheLastState) {
  std::ostringstream out;
  Watch watch;
  Progress progress(out, 100, watch.options(false));
  for (int done = 0; done <= 100; ++done) {
    watch.seconds = 0.25 * done;
    progress.update(static_cast<std::size_t>(done), "cell");
  }
  progress.finish();
  EXPECT_EQ(out.str(),
            "[0/100] 0.0 s  cell\n[40/100] 10 s, about 15 s left  cell\n[80/100] 20 s, about 5.0 s left  cell\n"
            "[100/100] 25 s\n");
}

TEST(Progress, ATerminalIsRewrittenInPlaceClippedAndCleared) {
  std::ostringstream out;
  Watch watch;
  {
    Progress progress(out, 3, watch.options(true, 20));
    progress.update(0, "a very long name of a cell");
    progress.print("a failure");
    watch.seconds = 1;
    progress.update(1, "b");
  }
  EXPECT_EQ(out.str(), "\r[0/3] 0.0 s  a very\033[K\r\033[Ka failure\n\r[1/3] 1.0 s, about \033[K\r\033[K");
  EXPECT_EQ(out.str().find('\n'), out.str().rfind('\n')) << "only what stays ends a line";
}

TEST(Progress, DurationsReadAtAGlance) {
  EXPECT_EQ(duration_text(0.44), "0.4 s");
  EXPECT_EQ(duration_text(59.4), "59 s");
  EXPECT_EQ(duration_text(185), "3 min 05 s");
  EXPECT_EQ(duration_text(7800), "2 h 10 min");
}

TEST(Style, AFileIsNoTerminalAndHasNoColor) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const TerminalStyle style = terminal_style(ends[1]);
  close(ends[0]);
  close(ends[1]);
  EXPECT_FALSE(style.is_terminal);
  EXPECT_FALSE(style.color);
}

TEST(Style, NoColorTurnsColourOffOnATerminal) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0) GTEST_SKIP() << "this machine has no pseudo-terminals";
  setenv("TERM", "xterm", 1);
  unsetenv("NO_COLOR");
  EXPECT_TRUE(terminal_style(terminal).color);
  setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(terminal_style(terminal).color);
  EXPECT_TRUE(terminal_style(terminal).is_terminal) << "lines may still be rewritten";
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(terminal_style(terminal).is_terminal);
  unsetenv("NO_COLOR");
  close(terminal);
  EXPECT_EQ(painted("x", Color::kRed, false), "x");
  EXPECT_EQ(painted("x", Color::kRed, true), "\033[31mx\033[0m");
}

TEST(Style, WidthCountsLettersNotBytes) {
  EXPECT_EQ(display_width("2.31×"), 5u);
  EXPECT_EQ(display_width(painted("ok", Color::kGreen, true)), 2u);
  EXPECT_EQ(clipped("µs per call", 2), "µs");
  EXPECT_EQ(clipped("short", 80), "short");
}

TEST(Table, AlignsColumnsByWhatIsSeen) {
  Table table({{"cell"}, {"ratio", Table::Align::kRight}, {"verdict"}});
  table.add_row({"sem.cayley", "2.31×", painted("faster", Color::kGreen, true)});
  table.add_row({"x", "114.0×", "same"});
  std::ostringstream out;
  table.print(out);
  EXPECT_EQ(out.str(),
            "cell         ratio  verdict\n"
            "----------  ------  -------\n"
            "sem.cayley   2.31×  \033[32mfaster\033[0m\n"
            "x           114.0×  same\n");
  EXPECT_THROW(table.add_row({"too", "few"}), Error);
}

}  // namespace
}  // namespace twinbench
