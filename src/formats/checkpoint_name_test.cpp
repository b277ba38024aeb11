// Checkpoint names and retention: the specification's form, names that only resemble it, who stays.
#include "src/formats/checkpoint_name.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "src/formats/checkpoint_fields.h"
#include "src/formats/checkpoint_file.h"
#include "src/formats/test_support.h"

namespace twinbench {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

// 1753781696: date -u -d '2025-07-29 09:34:56' +%s
TEST(CheckpointName, HasTheSpecifiedForm) {
  EXPECT_EQ(checkpoint_name({false, "debug", 1753781696, 7, 0.12345, ""}),
            "debug_config_20250729_093456_epoch_007_loss_0_1235.efck");
  EXPECT_EQ(checkpoint_name({true, "optimized", 1753781696, 1234, 12, "manual_2"}),
            "best_optimized_config_20250729_093456_epoch_1234_loss_12_0000_manual_2.efck");
  EXPECT_EQ(checkpoint_name({false, "debug", 0, 0, kNan, ""}), "debug_config_19700101_000000_epoch_000_loss_nan.efck");
  EXPECT_EQ(checkpoint_name({false, "debug", 0, 0, -kInfinity, ""}),
            "debug_config_19700101_000000_epoch_000_loss_inf.efck");
  EXPECT_EQ(checkpoint_type(4000), "debug");
  EXPECT_EQ(checkpoint_type(4001), "experiment");
  EXPECT_EQ(checkpoint_type(50000), "experiment");
  EXPECT_EQ(checkpoint_type(50001), "optimized");
}

TEST(CheckpointName, ParsesWhatItWrites) {
  for (const double loss : {0.0, 0.1234, 98765.4321, 1e15, kNan, kInfinity})
    for (const bool best : {false, true})
      for (const char* suffix : {"", "final", "7", "a_b"}) {
        const auto name = parse_checkpoint_name(checkpoint_name({best, "experiment", 1753781696, 42, loss, suffix}));
        ASSERT_TRUE(name) << loss << suffix;
        EXPECT_EQ(name->best, best);
        EXPECT_EQ(name->type, "experiment");
        EXPECT_EQ(name->time, 1753781696);
        EXPECT_EQ(name->epoch, 42);
        EXPECT_EQ(name->suffix, suffix);
        EXPECT_TRUE(std::isnan(loss) ? std::isnan(name->loss) : name->loss == loss) << loss << " " << name->loss;
      }
}

TEST(CheckpointName, LeavesOtherNamesAlone) {
  for (const char* other : {"", "notes.txt", "debug_config_20250729_093456_epoch_007_loss_0_1235.pt",
                            "debug_config_20250729_093456_epoch_007_loss_0_1235.efck.partial-a1b2c3",
                            "debug_config_20250231_093456_epoch_007_loss_0_1235.efck",
                            "debug_config_20250729_253456_epoch_007_loss_0_1235.efck",
                            "debug_config_20250729_093456_epoch_07_loss_0_1235.efck",
                            "debug_config_20250729_093456_epoch_007_loss_0_12.efck",
                            "debug_config_20250729_093456_epoch_007_loss_-1_0000.efck",
                            "debug_config_20250729_093456_epoch_007_loss_0.1235.efck",
                            "worst_debug_config_20250729_093456_epoch_007_loss_nan.efck",
                            "debug_config_20250729_093456_epoch_99999999999999999999_loss_nan.efck"})
    EXPECT_FALSE(parse_checkpoint_name(other)) << other;
}

TEST(CheckpointName, RefusesWhatItCouldNotParse) {
  EXPECT_EQ(error_of([] { checkpoint_name({false, "Debug", 0, 0, 0, ""}); }), "bad_argument: checkpoint type");
  EXPECT_EQ(error_of([] { checkpoint_name({false, "debug", 0, 0, 0, "../up"}); }), "bad_argument: checkpoint suffix");
  EXPECT_EQ(error_of([] { checkpoint_name({false, "debug", -1, 0, 0, ""}); }), "out_of_range: checkpoint time");
  EXPECT_EQ(error_of([] { checkpoint_name({false, "debug", 0, -1, 0, ""}); }), "out_of_range: checkpoint epoch");
  EXPECT_EQ(error_of([] { checkpoint_name({false, "debug", 0, 0, -0.5, ""}); }), "out_of_range: checkpoint loss");
  EXPECT_EQ(error_of([] { checkpoint_name({false, "debug", 0, 0, 2e15, ""}); }), "out_of_range: checkpoint loss");
}

NamedCheckpoint saved(std::int64_t time, std::uint64_t sequence, double loss, bool best) {
  const CheckpointName name{best, "debug", time, static_cast<std::int64_t>(sequence), loss, ""};
  return {checkpoint_name(name), name, sequence};
}

TEST(CheckpointRetention, KeepsTheBestAndTheLatestAndWhatWasJustWritten) {
  std::vector<NamedCheckpoint> all;
  const double losses[] = {0.5, 0.1, kNan, 0.2, 0.2, 0.4, 0.3, 0.9, kInfinity, 0.05};
  for (std::uint64_t i = 0; i < 10; ++i) all.push_back(saved(1000 + static_cast<std::int64_t>(i), i, losses[i], i < 6));
  const auto gone = [&](CheckpointRetention retention, std::size_t just_written) {
    std::string numbers;
    for (const std::string& file : expendable_checkpoints(all, retention, all[just_written].file))
      for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i].file == file) numbers += std::to_string(i) + " ";
    return numbers;
  };
  EXPECT_EQ(gone({}, 9), "0 2 ") << "best by loss: 1, 4 and 3; not 9, which is not called best";
  EXPECT_EQ(gone({.keep_best = 2, .keep_latest = 1}, 9), "0 2 3 5 6 7 8 ") << "of 3 and 4 the later";
  EXPECT_EQ(gone({.keep_best = 6, .keep_latest = 0}, 7), "6 8 9 ") << "NaN among the best comes last, and 7 is new";
  EXPECT_EQ(gone({.keep_best = 0, .keep_latest = 0}, 0), "1 2 3 4 5 6 7 8 9 ");
}

TEST(CheckpointRetention, OrdersOneSecondByTheNumberInside) {
  const std::vector<NamedCheckpoint> all = {saved(1000, 11, 0.5, false), saved(1000, 9, 0.5, false),
                                            saved(1000, 10, 0.5, false), saved(999, 12, 0.5, false)};
  const auto gone = expendable_checkpoints(all, {.keep_best = 0, .keep_latest = 2}, all[0].file);
  EXPECT_EQ(gone, (std::vector<std::string>{all[1].file, all[3].file}));
}

TEST(CheckpointRetention, OfTwentySavesExactlyTheSpecifiedRemain) {
  const TemporaryDirectory folder;
  PlaneCompressor compressor;
  for (const char* other : {"notes.txt", "debug_config_latest.efck", "model.pt"})
    write_bytes(folder.file(other), "mine");
  std::int64_t deleted = 0;
  for (std::uint64_t i = 0; i < 20; ++i) {
    const NamedCheckpoint one = saved(1000, i, i == 3 ? 0.01 : 1.0 / static_cast<double>(i + 1), i % 2 == 1);
    write_checkpoint(folder.file(one.file), {}, {}, i, SectionCodec::kStored, compressor);
    deleted += clean_checkpoints(folder.path(), {}, one.file);
  }
  std::string left;
  for (const NamedCheckpoint& one : list_checkpoints(folder.path())) left += std::to_string(one.sequence) + " ";
  EXPECT_EQ(left, "3 15 16 17 18 19 ") << "best: 3, 19, 17; latest: 15 to 19";
  EXPECT_EQ(deleted, 14);
  EXPECT_EQ(files_in(folder.path()), 6u + 3u) << "others' files stay";
  EXPECT_EQ(error_of([] { list_checkpoints("/nowhere"); }), "input_output: /nowhere");
}

TEST(CheckpointFields, CriticalOnesMustMatchOthersAreTold) {
  const std::vector<CheckpointField> saved_by = {{"lattice_width", "50", true}, {"noise", "0.05", false}};
  CheckpointMetadata metadata;
  add_checkpoint_fields(metadata, saved_by);
  EXPECT_TRUE(check_checkpoint_fields(metadata, saved_by, true).empty());
  const std::vector<CheckpointField> noisier = {{"lattice_width", "50", true}, {"noise", "0.1", false}};
  EXPECT_EQ(check_checkpoint_fields(metadata, noisier, false),
            (std::vector<std::string>{"noise was 0.05, the run has 0.1"}));
  EXPECT_EQ(error_of([&] { check_checkpoint_fields(metadata, noisier, true); }), "bad_argument: noise");
  const std::vector<CheckpointField> wider = {{"lattice_width", "60", true}};
  EXPECT_EQ(error_of([&] { check_checkpoint_fields(metadata, wider, false); }), "dim_mismatch: lattice_width");
  EXPECT_EQ(error_of([&] { check_checkpoint_fields({}, saved_by, false); }), "dim_mismatch: lattice_width");
}

}  // namespace
}  // namespace twinbench
