// The loader: the same batches for any number of workers and slots, failures at their own batch, early stops,
// resumption.
#include "optimized/energy_flow/dataset_loader/streaming_loader.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "src/formats/test_support.h"

namespace twinbench {
namespace {

TEST(BatchOrder, WorkedExample) {
  EXPECT_EQ(epoch_permutation(8, 0, 1234), (std::vector<std::uint32_t>{7, 2, 0, 1, 5, 3, 4, 6}));
  EXPECT_EQ(epoch_permutation(8, 1, 1234), (std::vector<std::uint32_t>{2, 4, 7, 6, 1, 0, 3, 5}));
}

TEST(BatchOrder, IsAPermutationAtEverySize) {
  for (const std::int64_t rows : {0, 1, 2, 255, 256, 257, 258, 1000}) {
    const auto order = epoch_permutation(rows, 3, 7);
    EXPECT_EQ(order.size(), static_cast<std::size_t>(rows));
    EXPECT_EQ(std::set<std::uint32_t>(order.begin(), order.end()).size(), order.size());
  }
  EXPECT_EQ(error_of([] { epoch_permutation(std::int64_t{1} << 32, 0, 0); }), "out_of_range: rows");
  EXPECT_EQ(error_of([] { epoch_permutation(1, -1, 0); }), "out_of_range: epoch");
}

TEST(BatchOrder, EveryEpochHasAnOrderOfItsOwn) {
  for (const std::int64_t epoch : {1, 255, 65535, 65536, 16777216})
    EXPECT_NE(epoch_permutation(50, epoch, 7), epoch_permutation(50, 0, 7)) << epoch;
}

TEST(BatchOrder, DocumentedDatasetHas314Batches) {
  const BatchPlan plan{5021, 16};
  EXPECT_EQ(plan.batches(), 314);
  EXPECT_EQ(plan.rows_of(313), 13);
  EXPECT_EQ((BatchPlan{5021, 16, 51}).batches(), 51);
  EXPECT_EQ((BatchPlan{0, 16}).batches(), 0);
  EXPECT_EQ((BatchPlan{3, 16}).rows_of(0), 3);
}

class LoaderTest : public ::testing::Test {
 protected:
  LoaderTest() { write(sample_dataset(103, 8)); }
  void write(Dataset dataset) {
    dataset_ = std::move(dataset);
    write_efds(path_, dataset_);
    prepare_efds(EfdsFile(path_));
  }
  static LoaderOptions options(int workers, int depth) {
    LoaderOptions options;
    options.workers = workers;
    options.prefetch_depth = depth;
    return options;
  }
  // Every batch checked against the dataset, then flattened to its rows.
  std::vector<std::int64_t> rows_of(const LoaderOptions& options) {
    StreamingLoader loader(path_, options);
    std::vector<std::int64_t> rows;
    while (const LoadedBatch* batch = loader.next()) {
      for (std::int64_t i = 0; i < batch->size(); ++i) {
        const std::int64_t row = batch->rows[static_cast<std::size_t>(i)];
        const auto bytes = static_cast<std::size_t>(dataset_.width) * sizeof(float);
        EXPECT_EQ(std::memcmp(batch->inputs + i * dataset_.width, dataset_.input(row), bytes), 0);
        EXPECT_EQ(std::memcmp(batch->targets + i * dataset_.width, dataset_.target(row), bytes), 0);
        EXPECT_EQ(batch->texts[static_cast<std::size_t>(2 * i)], dataset_.input_text(row));
        EXPECT_EQ(batch->texts[static_cast<std::size_t>(2 * i + 1)], dataset_.target_text(row));
        rows.push_back(row);
      }
    }
    EXPECT_EQ(loader.next(), nullptr);
    return rows;
  }

  TemporaryDirectory directory_;
  std::string path_ = directory_.file("a.efds");
  Dataset dataset_;
};

TEST_F(LoaderTest, SameBatchesForAnyWorkersAndDepth) {
  LoaderOptions one = options(0, 1);
  one.epochs = 3;
  const std::vector<std::int64_t> expected = rows_of(one);
  ASSERT_EQ(expected.size(), 3u * 103);
  const auto second = epoch_permutation(103, 1, 1234);
  EXPECT_TRUE(std::equal(second.begin(), second.end(), expected.begin() + 103));
  for (const int workers : {1, 2, 4, 12}) {
    for (const int depth : {1, 2, 4, 7}) {
      LoaderOptions many = options(workers, depth);
      many.epochs = 3;
      EXPECT_EQ(rows_of(many), expected) << workers << " workers, depth " << depth;
    }
  }
}

TEST_F(LoaderTest, WithoutShuffleTheOrderIsThatOfTheFile) {
  LoaderOptions plain = options(2, 3);
  plain.shuffle = false;
  const auto rows = rows_of(plain);
  for (std::size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(rows[i], static_cast<std::int64_t>(i));
}

TEST_F(LoaderTest, DroppedRowsAreLeftOutAndTheOthersKeepTheirNumbers) {
  Dataset dataset = sample_dataset(103, 8);
  dataset.inputs[8 * 5] = std::numeric_limits<float>::quiet_NaN();
  dataset.targets[8 * 77] = 1000;
  write(dataset);
  const auto rows = rows_of(options(2, 4));
  const std::set<std::int64_t> delivered(rows.begin(), rows.end());
  EXPECT_EQ(delivered.size(), 101u);
  EXPECT_EQ(delivered.count(5) + delivered.count(77), 0u);
  EXPECT_EQ(delivered.count(102), 1u);
}

TEST_F(LoaderTest, Bf16FilesAreWidened) {
  write(sample_dataset(20, 8, StoredType::kBf16));
  dataset_ = read_efds(EfdsFile(path_).view());
  EXPECT_EQ(rows_of(options(2, 2)).size(), 20u);
}

TEST_F(LoaderTest, SmallDatasets) {
  write(sample_dataset(0, 8));
  EXPECT_TRUE(rows_of(options(2, 4)).empty());
  write(sample_dataset(3, 8));
  EXPECT_EQ(rows_of(options(4, 4)).size(), 3u);  // fewer rows than a batch
}

TEST_F(LoaderTest, AWorkersErrorComesAtItsBatchAndStays) {
  LoaderOptions faulty = options(3, 4);
  faulty.before_gather = [](std::int64_t, std::int64_t batch) {
    if (batch == 5) throw std::runtime_error("injected");
  };
  for (faulty.workers = 0; faulty.workers <= 3; ++faulty.workers) {
    StreamingLoader loader(path_, faulty);
    for (int batch = 0; batch < 5; ++batch) ASSERT_EQ(loader.next()->index, batch);
    EXPECT_THROW(loader.next(), std::runtime_error);
    EXPECT_THROW(loader.next(), std::runtime_error);
  }
}

TEST_F(LoaderTest, EarlyStopJoinsWhateverTheWorkersDo) {
  for (int stop_after = 0; stop_after < 7; ++stop_after) {
    LoaderOptions slow = options(4, 4);
    std::atomic<int> running{0};
    slow.before_gather = [&](std::int64_t, std::int64_t batch) {
      ++running;
      if (batch % 2 == 1) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      --running;
    };
    {
      StreamingLoader loader(path_, slow);
      for (int batch = 0; batch < stop_after; ++batch) ASSERT_NE(loader.next(), nullptr);
    }
    EXPECT_EQ(running, 0);
  }
}

TEST_F(LoaderTest, SlowWorkersDoNotChangeTheOrder) {
  LoaderOptions uneven = options(4, 4);
  uneven.before_gather = [](std::int64_t, std::int64_t batch) {
    if (batch % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  EXPECT_EQ(rows_of(uneven), rows_of(options(0, 1)));
}

TEST_F(LoaderTest, TheConsumerGathersTheFirstBatchItself) {
  LoaderOptions watched = options(2, 4);
  std::mutex mutex;
  std::vector<std::pair<std::int64_t, std::thread::id>> gathered;
  watched.before_gather = [&](std::int64_t, std::int64_t batch) {
    const std::lock_guard lock(mutex);
    gathered.emplace_back(batch, std::this_thread::get_id());
  };
  rows_of(watched);
  ASSERT_EQ(gathered.size(), 7u);  // each once
  for (const auto& [batch, thread] : gathered) EXPECT_EQ(thread == std::this_thread::get_id(), batch == 0) << batch;
}

TEST_F(LoaderTest, AHeldBatchIsNotOverwritten) {
  StreamingLoader loader(path_, options(2, 2));
  const LoadedBatch* batch = loader.next();
  const std::vector<float> before(batch->inputs, batch->inputs + 16 * 8);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the workers fill all they may
  EXPECT_EQ(std::memcmp(before.data(), batch->inputs, before.size() * sizeof(float)), 0);
}

TEST_F(LoaderTest, ResumesWhereItStopped) {
  LoaderOptions all = options(2, 4);
  all.epochs = 2;
  const auto expected = rows_of(all);
  StreamingLoader first(path_, all);
  for (int batch = 0; batch < 9; ++batch) first.next();  // 7 batches an epoch
  EXPECT_EQ(first.position().epoch, 1);
  EXPECT_EQ(first.position().batch, 2);
  LoaderOptions rest = options(2, 4);
  rest.start = first.position();
  const auto tail = rows_of(rest);
  EXPECT_TRUE(std::equal(tail.begin(), tail.end(), expected.begin() + 103 + 32));
  EXPECT_EQ(tail.size(), 103u - 32);
  LoaderOptions beyond = options(1, 2);  // past the end of epoch 0: epoch 1
  beyond.start = {0, 9};
  beyond.epochs = 2;
  EXPECT_EQ(rows_of(beyond), tail);
}

TEST_F(LoaderTest, LimitOfBatchesPerEpoch) {
  LoaderOptions limited = options(2, 4);
  limited.max_batches_per_epoch = 2;
  limited.epochs = 3;
  EXPECT_EQ(rows_of(limited).size(), 3u * 32);
}

TEST_F(LoaderTest, SettingsThatMakeNoSense) {
  const auto error = [&](auto change) {
    LoaderOptions wrong;
    change(wrong);
    return error_of([&] { StreamingLoader loader(path_, wrong); });
  };
  EXPECT_EQ(error([](auto& wrong) { wrong.batch = 0; }), "out_of_range: batch");
  EXPECT_EQ(error([](auto& wrong) { wrong.workers = -1; }), "out_of_range: workers");
  EXPECT_EQ(error([](auto& wrong) { wrong.prefetch_depth = 0; }), "out_of_range: prefetch_depth");
  EXPECT_EQ(error([](auto& wrong) { wrong.start.epoch = -1; }), "out_of_range: start epoch");
  EXPECT_EQ(error([](auto& wrong) { wrong.expected_width = 768; }).substr(0, 12), "dim_mismatch");
}

}  // namespace
}  // namespace twinbench
