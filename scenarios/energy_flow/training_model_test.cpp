// The training run: what it goes on from, in which order pairs come, and which files and sizes it refuses.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>

#include "scenarios/energy_flow/training_model.h"
#include "scenarios/runner/catalogue.h"
#include "scenarios/runner/fake_run.h"
#include "scenarios/runner/observe.h"
#include "src/common/error.h"
#include "src/formats/convert.h"

namespace twinbench::energy_flow {
namespace {

constexpr std::int64_t kPairs = 6, kWidth = 5;

ScenarioConfig small() {
  ScenarioConfig config;
  config.file = "planted.yaml";
  config.name = "planted";
  config.run = "energy_flow.training";
  config.seed = 7;
  config.sizes = {{"micro_steps", 1},  {"micro_batch", 2},  {"embedding", kWidth}, {"height", 2},    {"width", 3},
                  {"quota", 6},        {"max_steps", 3},    {"hidden", 6},         {"layers", 2},    {"features", 5},
                  {"neuron_width", 8}, {"energy_width", 3}, {"head_width", 6},     {"pairs", kPairs}};
  config.options = {{"spawn", 0}, {"scale", 3}, {"noise", 0.05}, {"shuffled", 1}, {"baseline_sanitises", 1}};
  return config;
}

DatasetPairs pairs() {
  const auto all = at::arange(2 * kPairs * kWidth, at::kFloat).mul(0.37).sin().view({2, kPairs, kWidth});
  DatasetPairs result{all[0].clone(), all[1].clone()};
  for (std::int64_t i = 0; i < kPairs; ++i) {
    std::string text = "A man";
    for (std::int64_t k = 0; k <= i; ++k) text += " walks" + std::to_string(k % 4);
    result.input_texts.push_back(i == 2 ? "" : text + "!");
    result.target_texts.push_back(i == 3 ? " " : "the man is far " + text);
  }
  return result;
}

// Of the same flows, with an encoder beside them.
ScenarioConfig with_texts() {
  ScenarioConfig config = small();
  for (const auto& [name, size] : Sizes{{"encoder_layers", 1},
                                        {"encoder_heads", 2},
                                        {"encoder_head_width", 4},
                                        {"encoder_ff", 12},
                                        {"vocabulary", 24},
                                        {"max_length", 12},
                                        {"decoder_layers", 1},
                                        {"decoder_heads", 2},
                                        {"decoder_head_width", 4},
                                        {"decoder_ff", 12},
                                        {"tokens", 4},
                                        {"longest_word", 8}})
    config.sizes[name] = size;
  config.options["text_bridge"] = 1, config.options["decoder_step_interval"] = 2;
  return config;
}

std::unique_ptr<TrainingRun> start(Variant variant, const ScenarioConfig& config = small()) {
  return make_training_run(config, {variant, Dtype::kFp32, c10::Device(c10::DeviceType::CPU)}, pairs());
}

// Its file holds `rows` pairs.
class DatasetFile {
 public:
  explicit DatasetFile(std::int64_t rows) {
    Dataset dataset;
    dataset.rows = rows, dataset.width = kWidth;
    dataset.inputs.assign(static_cast<std::size_t>(rows * kWidth), 0.5f);
    dataset.targets.assign(static_cast<std::size_t>(rows * kWidth), 0.25f);
    for (std::int64_t i = 0; i < 2 * rows; ++i) dataset.texts.add("a text");
    write_any(path.string(), dataset);
  }
  ~DatasetFile() { std::filesystem::remove(path); }
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("pairs_" + std::to_string(getpid()) + ".safetensors");
};

TEST(Training, AStateTakenAndPutBackIsTheWholeRun) {
  for (const auto variant : {Variant::kBaseline, Variant::kOptimized}) {
    const auto straight = start(variant), other = start(variant);
    for (int i = 0; i < 4; ++i) straight->step();
    other->set_state(straight->state());
    EXPECT_EQ(mismatched_bits(straight->state(), other->state()), 0);
    for (int i = 0; i < 3; ++i) straight->step(), other->step();
    EXPECT_EQ(mismatched_bits(straight->state(), other->state()), 0) << to_string(variant);
    EXPECT_EQ(mismatched_bits(straight->outputs(), other->outputs()), 0) << to_string(variant);
    EXPECT_EQ(straight->counters()["applied"], 7);
  }
}

// Of parameters that stay and embeddings that are all the same, a pair's loss is its text's, in every epoch.
TEST(Training, TextsGoWithTheirPairs) {
  auto config = with_texts();
  config.sizes["micro_batch"] = 1, config.options["learning_rate"] = 0;
  DatasetPairs alike = pairs();
  alike.input.copy_(alike.input.narrow(0, 0, 1).expand_as(alike.input).clone());
  std::vector<double> of_baseline;
  for (const auto variant : {Variant::kBaseline, Variant::kOptimized}) {
    const auto run = make_training_run(config, {variant, Dtype::kFp32, Device()}, alike);
    std::vector<double> first, second;
    for (int i = 0; i < 2 * kPairs; ++i) {
      run->step();
      (i < kPairs ? first : second).push_back(run->losses()["encoder_loss"]);
    }
    EXPECT_NE(first, second) << "another order";
    std::sort(first.begin(), first.end()), std::sort(second.begin(), second.end());
    for (std::size_t i = 0; i < first.size(); ++i) EXPECT_NEAR(first[i], second[i], 1e-6) << to_string(variant);
    for (std::size_t i = 1; i < first.size(); ++i) EXPECT_GT(first[i] - first[i - 1], 1e-5) << to_string(variant);
    if (of_baseline.empty()) of_baseline = first;
    for (std::size_t i = 0; i < first.size(); ++i) EXPECT_NEAR(first[i], of_baseline[i], 1e-5);
  }
}

// The component has places for four rows; with three pairs there is not even a fourth text to put there.
TEST(Training, AWindowThatLacksARowHasFewerTexts) {
  for (const std::int64_t of_dataset : {3, 6}) {
    auto config = with_texts();
    config.sizes["micro_steps"] = 2, config.sizes["pairs"] = of_dataset, config.options["missing_rows"] = 1;
    const auto baseline = start(Variant::kBaseline, config), optimized = start(Variant::kOptimized, config);
    for (int window = 0; window < 2; ++window) {
      baseline->step(), optimized->step();
      for (const auto& [name, loss] : baseline->losses()) {
        EXPECT_GT(loss, 0) << name;
        EXPECT_NEAR(optimized->losses()[name], loss, 1e-5 * loss) << name << " of window " << window;
      }
    }
    EXPECT_EQ(optimized->counters()["applied"], 2);
  }
}

TEST(Training, AControlledWindowMayLackARow) {
  const DatasetFile file(kPairs);
  auto config = small();
  config.run = "energy_flow.controlled", config.dataset = file.path.string();
  config.sizes["micro_steps"] = 2, config.options["missing_rows"] = 1;
  config.options.erase("shuffled"), config.options.erase("baseline_sanitises");
  for (const char* option : {"documented_order", "weight_decay", "clip"}) config.options[option] = 0;
  config.options["learning_rate"] = 1e-4;
  const auto workload = catalogue().run(config.run, "run").prepare(config);
  for (const auto variant : {Variant::kBaseline, Variant::kOptimized}) {
    const auto run = workload->make({variant, Dtype::kFp32, Device()});
    for (int window = 0; window < 3; ++window) run->step();
    EXPECT_EQ(run->counters()["applied"], 3) << to_string(variant);
  }
}

TEST(Training, ARunWithTextsGoesOnFromItsState) {
  for (const auto variant : {Variant::kBaseline, Variant::kOptimized}) {
    const auto straight = start(variant, with_texts()), other = start(variant, with_texts());
    for (int i = 0; i < 3; ++i) straight->step();
    other->set_state(straight->state());
    for (int i = 0; i < 3; ++i) straight->step(), other->step();
    EXPECT_EQ(mismatched_bits(straight->state(), other->state()), 0) << to_string(variant);
    EXPECT_EQ(straight->losses()["encoder_loss"], other->losses()["encoder_loss"]);
  }
}

TEST(Training, EpochsHaveOrdersOfTheirOwnAndBothVariantsTheSame) {
  auto config = small();
  config.sizes["micro_batch"] = 1;
  const auto losses = [&](Variant variant) {
    const auto run = start(variant, config);
    std::vector<double> all;
    for (int i = 0; i < 12; ++i) run->step(), all.push_back(run->losses()["loss"]);
    return all;
  };
  const auto shuffled = losses(Variant::kOptimized), baseline = losses(Variant::kBaseline);
  for (std::size_t i = 0; i < shuffled.size(); ++i) EXPECT_NEAR(shuffled[i], baseline[i], 1e-5) << i;
  config.options["shuffled"] = 0;
  const auto in_order = losses(Variant::kOptimized);
  // Parameters hardly move in an epoch: a pair's loss is nearly what it was.
  const auto worst = [](const std::vector<double>& of) {
    double most = 0;
    for (std::size_t i = 0; i < 6; ++i) most = std::max(most, std::abs(of[i] - of[i + 6]) / of[i]);
    return most;
  };
  EXPECT_LT(worst(in_order), 0.2 * worst(shuffled));
}

TEST(Training, RefusesWindowsThatDoNotFillAnEpoch) {
  for (const auto& [rows, field] : {std::pair{4, "sizes.pairs"}, std::pair{0, "sizes.micro_batch"}}) {
    auto config = small();
    config.sizes["micro_batch"] = rows;
    try {
      start(Variant::kOptimized, config);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kOutOfRange);
      EXPECT_NE(error.field().find(field), std::string::npos) << error.what();
    }
  }
}

// SC26's 2 % of fp32, and not its bits: the mode reaches the component.
TEST(Training, InBf16IsNearlyThatInFp32) {
  for (const auto variant : {Variant::kBaseline, Variant::kOptimized}) {
    const auto exact = start(variant), half = make_training_run(small(), {variant, Dtype::kBf16, {}}, pairs());
    for (int i = 0; i < 12; ++i) {
      exact->step(), half->step();
      const double expected = exact->losses()["loss"], is = half->losses()["loss"];
      EXPECT_NEAR(is, expected, 0.02 * expected) << to_string(variant) << " " << i;
      EXPECT_NE(is, expected) << to_string(variant) << " " << i;
    }
    EXPECT_EQ(half->counters()["applied"], 12);
  }
}

TEST(Training, RefusesStateThatIsNotItsOwn) {
  const auto run = start(Variant::kOptimized);
  EXPECT_THROW(run->set_state({{"parameters", at::zeros({3})}}), Error);
  EXPECT_THROW(run->set_state({{"window", at::zeros({1})}}), Error);
  EXPECT_THROW(run->set_state({{"parameter", at::zeros({3})}}), Error);
}

// A scenario of that run: the file's text, with its dataset, pairs and kind.
std::string planted(const std::string& kind, const std::string& dataset, std::int64_t pairs,
                    const std::string& criteria) {
  return "name: planted\nexperiment: " + kind + "\nrun: energy_flow.training\nsource: energy_flow SC36\n" +
         "tier: smoke\nsummary: A planted run\nshows: {baseline: the sin, optimized: none of it}\nseed: 1\n" +
         "dtype: fp32\ndataset: " + dataset +
         "\nsizes: {micro_steps: 1, micro_batch: 2, embedding: " + std::to_string(kWidth) +
         ", height: 2, width: 3, quota: 6, max_steps: 3, hidden: 6, layers: 2, features: 5, neuron_width: 8, "
         "energy_width: 3, head_width: 6, pairs: " +
         std::to_string(pairs) + "}\ncriteria:\n" + criteria;
}

ScenarioConfig read_planted(const std::string& text) { return fake::read(text, catalogue()); }

void expect_refused(const std::string& text, ErrorKind kind, const std::vector<std::string>& parts) {
  try {
    read_planted(text);
    ADD_FAILURE() << text;
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.kind(), kind) << message;
    EXPECT_NE(message.find("planted_"), std::string::npos) << message;
    for (const auto& part : parts) EXPECT_NE(message.find(part), std::string::npos) << message;
  }
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

const std::string kWindows =
    "  - {measure: baseline.completed_windows, equals: 8, why: it is so}\n"
    "  - {measure: optimized.non_finite, equals: 0, why: it is so}\n"
    "  - {measure: optimized.growth.held_bytes, equals: 0, why: it is so}\n"
    "  - {measure: optimized.growth.dispatches, equals: 0, why: it is so}\n";

// Before any variant runs, and before the scenarios of the files that were read with it.
TEST(Training, ADatasetThatDoesNotFitIsRefusedAtReading) {
  const DatasetFile file(kPairs);
  const std::string laws =
      "  - {measure: parity.worst_ratio, at_most: 1, why: it is so}\n"
      "  - {measure: baseline.exponent.scalar_reads, at_least: 1, why: it is so}\n"
      "  - {measure: optimized.exponent.scalar_reads, equals: 0, why: it is so}\n"
      "over: pairs\nvalues: ";
  const auto stable = [&](const std::string& dataset, std::int64_t pairs) {
    return planted("stability", dataset, pairs, kWindows + "windows: 8\n");
  };
  EXPECT_NO_THROW(read_planted(stable(file.path.string(), kPairs)));
  EXPECT_NO_THROW(read_planted(planted("sweep", file.path.string(), kPairs, laws + "[2, 4, 6]")));
  const struct {
    std::string text;
    ErrorKind kind;
    std::vector<std::string> message;
  } wrong[] = {
      {stable("/nowhere/pairs.efds", kPairs),
       ErrorKind::kInputOutput,
       {": dataset", "/nowhere/pairs.efds", "makes it"}},
      {stable(file.path.string(), kPairs + 2), ErrorKind::kOutOfRange, {"sizes.pairs", "'8'", "only 6 pairs"}},
      {stable(file.path.string(), kPairs - 1), ErrorKind::kOutOfRange, {"sizes.pairs", "'5'", "a multiple of"}},
      {with(stable(file.path.string(), kPairs), "embedding: 5", "embedding: 6"),
       ErrorKind::kDimensionMismatch,
       {"sizes.embedding", "'6'", "5 wide"}},
      {planted("sweep", file.path.string(), kPairs, laws + "[2, 4, 8]"),
       ErrorKind::kOutOfRange,
       {"sizes.pairs", "'8'", "only 6 pairs"}},
  };
  for (const auto& [text, kind, message] : wrong) expect_refused(text, kind, message);
}

// Its header is whole, so that only who reads all of it sees the damage.
TEST(Training, ADamagedDatasetIsNamedAtReading) {
  const auto path = std::filesystem::temp_directory_path() / ("damaged_" + std::to_string(getpid()) + ".efds");
  const Dataset dataset = read_any(DatasetFile(kPairs).path.string());
  const auto text = planted("stability", path.string(), kPairs, kWindows + "windows: 8\n");
  write_any(path.string(), dataset);
  EXPECT_NO_THROW(read_planted(text));
  for (const auto& [from_end, part] : {std::pair{1, "text blob"}, std::pair{4096, "text index"}}) {
    write_any(path.string(), dataset);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(-from_end, std::ios::end);
    const char byte = static_cast<char>(file.peek() ^ 4);
    file.seekp(-from_end, std::ios::end);
    file.put(byte);
    file.close();
    expect_refused(text, ErrorKind::kCorrupt, {": dataset", path.string(), part});
  }
  std::filesystem::remove(path);
}

TEST(Training, InvalidRowsAreLeftOutAndCounted) {
  const DatasetFile file(kPairs);
  Dataset dataset = read_any(file.path.string());
  for (std::int64_t row = 0; row < kPairs; ++row) dataset.inputs[static_cast<std::size_t>(row * kWidth)] += 0.01f * row;
  dataset.inputs[0] = std::numeric_limits<float>::quiet_NaN();
  std::fill_n(dataset.targets.begin() + 3 * kWidth, kWidth, 0.0f);
  write_any(file.path.string(), dataset);
  const auto of_pairs = [&](std::int64_t pairs) {
    return planted("stability", file.path.string(), pairs, kWindows + "windows: 8\n");
  };
  expect_refused(of_pairs(kPairs), ErrorKind::kOutOfRange, {"sizes.pairs", "only 4 pairs", "2 of 6 rows", "0, 3"});
  const auto config = read_planted(of_pairs(4));
  const auto pairs = dataset_pairs(config, "pairs", "embedding");
  EXPECT_EQ(pairs.rows, (std::vector<std::int64_t>{1, 2, 4, 5}));
  for (std::int64_t i = 0; i < 4; ++i)
    EXPECT_FLOAT_EQ(pairs.input[i][0].item<float>(), 0.5f + 0.01f * static_cast<float>(pairs.row(i)));
  EXPECT_EQ(at::isfinite(pairs.input).all().item<bool>() && pairs.target.min().item<float>() > 0, true);
  const auto& source = catalogue().run(config.run, "run");
  EXPECT_NE(source.remark(config).find("2 of 6 rows are invalid and left out: 0, 3"), std::string::npos);
  const auto run = source.prepare(config)->make({Variant::kOptimized, Dtype::kFp32, Device()});
  for (int window = 0; window < 4; ++window) run->step();
  EXPECT_EQ(run->counters()["input_sanitised"], 0);
}

// The same run, of pairs that are no first rows: its noise is keyed by the file's numbers.
TEST(Training, ALeftOutRowMovesNoKey) {
  auto config = small();
  config.options["shuffled"] = 0;
  DatasetPairs moved = pairs();
  moved.rows = {1, 2, 4, 5, 6, 7};
  const auto loss = [&](const DatasetPairs& of) {
    const auto run = make_training_run(config, {Variant::kOptimized, Dtype::kFp32, Device()}, of);
    run->step();
    return run->losses()["loss"];
  };
  const double as_it_stands = loss(pairs());
  EXPECT_NE(loss(moved), as_it_stands);
  moved.rows = {0, 1, 2, 3, 4, 5};
  EXPECT_EQ(loss(moved), as_it_stands);
}

TEST(Training, SizesOfTextsAreReadWithTheTexts) {
  const DatasetFile file(kPairs);
  const std::string sizes =
      "encoder_layers: 1, encoder_heads: 2, encoder_head_width: 4, encoder_ff: 12, vocabulary: 24, max_length: 12, "
      "decoder_layers: 1, decoder_heads: 2, decoder_head_width: 4, decoder_ff: 12, tokens: 4, longest_word: 8, ";
  const auto plain =
      planted("stability", file.path.string(), kPairs,
              kWindows + "  - {measure: optimized.apart.loss, at_most: 0.1, why: it is so}\nwindows: 8\n");
  const auto texts =
      with(with(plain, "micro_steps", sizes + "micro_steps"), "sizes:", "options: {text_bridge: 1}\nsizes:");
  const auto judged = [](const std::string& text, const std::string& loss) {
    return with(text, "apart.loss", "apart." + loss);
  };
  EXPECT_NO_THROW(read_planted(plain));
  EXPECT_NO_THROW(read_planted(texts));
  EXPECT_NO_THROW(read_planted(judged(texts, "encoder_loss")));
  expect_refused(with(texts, "vocabulary: 24", "vocabulary: 5"), ErrorKind::kOutOfRange, {"sizes: vocabulary", "'5'"});
  expect_refused(with(texts, "decoder_ff: 12, ", ""), ErrorKind::kOutOfRange, {"sizes: decoder_ff", "'0'"});
  expect_refused(judged(plain, "encoder_loss"), ErrorKind::kOutOfRange, {"criteria[4]", "text_bridge: 1"});
  expect_refused(judged(texts, "encoder_los"), ErrorKind::kUnknownName, {"criteria[4]", "'encoder_loss'"});
}

TEST(Training, APrecisionThatChangesNothingIsRefused) {
  const DatasetFile file(kPairs);
  const auto text = [&](const std::string& dtype, const std::string& without, int hidden_dtype) {
    const auto plain = planted("precision", file.path.string(), kPairs,
                               "  - {measure: baseline.non_finite, equals: 0, why: it is so}\n"
                               "  - {measure: optimized.non_finite, equals: 0, why: it is so}\n"
                               "  - {measure: optimized.loss_apart.loss, at_most: 0.1, why: it is so}\n"
                               "  - {measure: optimized.last_over_first.loss, at_most: 2, why: it is so}\n"
                               "windows: 4\nends: 1\nfp32_without: " +
                                   without + "\noptions: {hidden_dtype: " + std::to_string(hidden_dtype) + "}\n");
    return with(plain, "dtype: fp32", "dtype: " + dtype);
  };
  EXPECT_NO_THROW(read_planted(text("bf16", "none", 0)));
  EXPECT_NO_THROW(read_planted(text("bf16", "hidden_dtype", 1)));
  EXPECT_NO_THROW(read_planted(text("fp32", "hidden_dtype", 1)));
  expect_refused(text("fp32", "none", 1), ErrorKind::kOutOfRange, {": dtype", "both runs would be one"});
  for (const char* dtype : {"fp32", "bf16"})
    expect_refused(text(dtype, "hidden_dtype", 0), ErrorKind::kOutOfRange, {": fp32_without", "0 in both runs"});
  for (const char* other : {"learning_rate", "clip", "seed", "quota", "pairs"})
    expect_refused(text("bf16", other, 1), ErrorKind::kOutOfRange, {": fp32_without", other, "_dtype"});
  expect_refused(text("bf16", "hiden_dtype", 1), ErrorKind::kUnknownName, {"'hidden_dtype'"});
}

TEST(Training, DeclaresTheOutputsThatItHas) {
  const auto run = start(Variant::kOptimized);
  run->step();
  std::vector<std::string> names;
  for (const auto& [name, tensor] : run->outputs()) names.push_back(name);
  EXPECT_EQ(names, catalogue().run("energy_flow.training", "run").outputs);
  std::set<std::string> losses;
  for (const auto& [name, loss] : start(Variant::kOptimized, with_texts())->losses()) losses.insert(name);
  const auto& declared = catalogue().run("energy_flow.training", "run").losses;
  EXPECT_EQ(losses, std::set<std::string>(declared.begin(), declared.end()));
}

TEST(Training, TakesAUsersFileAndNamesWhatDoesNotFit) {
  const DatasetFile file(kPairs);
  auto config = small();
  config.dataset = file.path.string();
  const auto& source = catalogue().run(config.run, "run");
  EXPECT_EQ(source.prepare(config)->items(), kPairs);
  const auto refused = [&](ErrorKind kind, const char* field) {
    try {
      source.prepare(config);
      ADD_FAILURE() << field;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      EXPECT_NE(error.field().find(field), std::string::npos) << error.what();
    }
  };
  config.sizes["pairs"] = kPairs + 2;
  refused(ErrorKind::kOutOfRange, "sizes.pairs");
  config.sizes["pairs"] = kPairs, config.sizes["embedding"] = kWidth + 1;
  refused(ErrorKind::kDimensionMismatch, "sizes.embedding");
  config.dataset = "/nowhere/pairs.efds";
  refused(ErrorKind::kInputOutput, "dataset");
}

}  // namespace
}  // namespace twinbench::energy_flow
