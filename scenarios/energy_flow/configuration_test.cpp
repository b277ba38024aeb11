// Documented configurations against the figures that were recomputed by hand, and what is refused.
#include "scenarios/energy_flow/configuration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "harness/record/source_folder.h"
#include "scenarios/energy_flow/footprint.h"
#include "src/common/error.h"
#include "src/formats/bytes.h"
#include "src/formats/file_io.h"

namespace twinbench::energy_flow {
namespace {

using testing::HasSubstr;

std::map<std::string, Configuration> documented() {
  std::map<std::string, Configuration> all;
  for (auto& configuration : read_configurations(std::string(kSourceFolder) + "/configurations"))
    all.emplace(configuration.name, configuration);
  return all;
}

std::int64_t count_of(const Configuration& configuration, const std::string& part) {
  for (const auto& parameters : parameters_of(configuration))
    if (parameters.part == part) return parameters.count;
  ADD_FAILURE() << "no part " << part;
  return 0;
}

TEST(Configuration, TheDocumentedOnesAskForSoManyFlowsAndGetSoMany) {
  const auto all = documented();
  const auto expect = [&](const char* name, std::int64_t requested, std::int64_t quota, std::int64_t admitted,
                          std::int64_t steps) {
    const auto flows = population_of(all.at(name));
    EXPECT_EQ(flows.requested, requested) << name;
    EXPECT_EQ(flows.quota, quota) << name;
    EXPECT_EQ(flows.admitted, admitted) << name;
    EXPECT_EQ(flows.dropped, requested - admitted) << name;
    EXPECT_EQ(all.at(name).most_steps(), steps) << name;
  };
  expect("debug", 3200, 6250, 3200, 5);
  expect("experiment_as_coded", 12544, 12500, 12544, 20);
  expect("experiment", 40000, 312, 4992, 50);
  expect("rtx5090", 409600, 312, 19968, 30);
  expect("large_lattice", 1280000, 1562, 199936, 25);
  expect("optimized", 320000, 6250, 200000, 25);
  expect("unit", 256, 128, 256, 4);
}

TEST(Configuration, ParametersAreThoseOfTheParts) {
  const auto all = documented();
  const auto& experiment = all.at("experiment");
  EXPECT_EQ(count_of(experiment, "mapper"), 41375002);
  EXPECT_EQ(count_of(experiment, "neuron"), 3468);
  EXPECT_EQ(count_of(experiment, "carrier"), 2465280);
  EXPECT_EQ(count_of(experiment, "heads"), 131585 + 33027);
  EXPECT_EQ(count_of(experiment, "text encoder"), 9707716);
  Configuration gate = experiment;
  gate.fields["spawn_mode"] = "gate";
  EXPECT_EQ(count_of(gate, "heads"), 131585 + 33027 + 33410);
  // Millions, of the mapper, the collector, the carrier, the encoder, the adapter and the decoder.
  const std::map<std::string, std::vector<double>> millions = {
      {"debug", {1.58, 1.58, 0.643, 9.17, 0.18, 41.6}},
      {"experiment_as_coded", {4.90, 4.90, 4.04, 9.27, 0.51, 41.6}},
      {"experiment", {41.4, 41.4, 2.47, 9.71, 3.77, 41.6}},
      {"rtx5090", {255.7, 255.7, 15.95, 10.7, 22.1, 41.6}},
      {"optimized", {615.5, 615.5, 15.95, 11.6, 52.6, 41.6}}};
  for (const auto& [name, expected] : millions) {
    std::size_t at = 0;
    for (const char* part : {"mapper", "collector", "carrier", "text encoder", "text adapter", "text decoder"}) {
      EXPECT_NEAR(static_cast<double>(count_of(all.at(name), part)) / 1e6, expected[at], 0.006 * expected[at] + 0.005)
          << name << " " << part;
      ++at;
    }
  }
  EXPECT_NEAR(footprint_of(all.at("experiment")).weights, 562e6, 1e6);
  EXPECT_NEAR(footprint_of(all.at("rtx5090")).weights, 2.41e9, 0.01e9);
}

TEST(Configuration, TapesAreThoseOfTheWorstCase) {
  const auto all = documented();
  EXPECT_EQ(saved_by_baseline(sizes_of(all.at("experiment"))), 8274);
  EXPECT_EQ(saved_by_baseline(sizes_of(all.at("experiment_as_coded"))), 11858);
  EXPECT_EQ(saved_by_baseline(sizes_of(all.at("rtx5090"))), 23122);
  EXPECT_EQ(saved_by_optimized(sizes_of(all.at("experiment"))), 5448);
  EXPECT_EQ(saved_by_optimized(sizes_of(all.at("experiment_as_coded"))), 8008);
  EXPECT_EQ(saved_by_optimized(sizes_of(all.at("rtx5090"))), 15944);
  const auto expect = [](Configuration configuration, std::int64_t rows, std::int64_t every, double baseline,
                         double optimized) {
    configuration.fields["micro_batch"] = rows;
    configuration.fields["keep_state_every"] = every;
    const auto bytes = footprint_of(configuration);
    EXPECT_NEAR(bytes.baseline_tape / 1e9, baseline, 0.005 * baseline) << configuration.name;
    EXPECT_NEAR(bytes.optimized_tape / 1e9, optimized, 0.005 * optimized) << configuration.name << " " << every;
  };
  expect(all.at("experiment_as_coded"), 0, 0, 11.9, 8.04);
  expect(all.at("experiment_as_coded"), 0, 5, 11.9, 2.32);
  expect(all.at("experiment_as_coded"), 0, 2, 11.9, 1.58);
  expect(all.at("experiment"), 0, 0, 8.26, 5.44);
  expect(all.at("rtx5090"), 0, 0, 55.4, 38.2);
  expect(all.at("rtx5090"), 0, 5, 55.4, 7.84);
  expect(all.at("rtx5090"), 0, 2, 55.4, 6.23);
  expect(all.at("large_lattice"), 0, 0, 462, 319);
  // Every flow that is asked for, a row at a time.
  Configuration everyone = all.at("rtx5090");
  everyone.fields["max_active_flows"] = 409600;
  expect(everyone, 0, 0, 1136, 784);
  expect(everyone, 1, 0, 17.75, 12.2);
  expect(everyone, 1, 5, 17.75, 2.51);
}

TEST(Configuration, StorageIsItsFieldsTimesItsSlots) {
  EXPECT_EQ(footprint_of(documented().at("unit")).storage, 152064);
  Configuration half = documented().at("unit");
  half.fields["hidden_dtype"] = "bf16";
  EXPECT_EQ(footprint_of(half).storage, 152064 - 512 * 2 * 32 * 2);
}

TEST(Configuration, WhatDoesNotFitSaysWhatWould) {
  Configuration whole = documented().at("rtx5090");
  whole.fields["micro_batch"] = 0;
  whole.fields["keep_state_every"] = 0;
  EXPECT_GT(footprint_of(whole).optimized(), 32e9);
  const auto split = split_that_fits(whole, 32e9);
  ASSERT_TRUE(split);
  EXPECT_LE(split->bytes, 32e9);
  EXPECT_EQ(split->micro_batch, 64);  // recomputing comes before splitting
  EXPECT_GT(split->keep_state_every, 0);
  EXPECT_FALSE(split_that_fits(whole, footprint_of(whole).without_tape()));
}

TEST(Configuration, EveryFlowOfEveryDocumentedOneFits32GB) {
  for (auto& [name, configuration] : documented()) {
    Configuration everyone = configuration;
    everyone.fields["max_active_flows"] = population_of(configuration).requested;
    EXPECT_EQ(population_of(everyone).dropped, 0) << name;
    EXPECT_TRUE(split_that_fits(everyone, 32e9)) << name;
  }
}

class Refused : public testing::Test {
 protected:
  std::string told(const std::string& fields, const std::string& head = "name: a\nsource: b\nsummary: c\n") {
    const std::string file = folder_.file("a.yaml");
    const std::string lattice = "fields:\n  lattice_width: 4\n  lattice_height: 4\n  lattice_depth: 4\n";
    write_file(file, as_bytes(head + lattice + fields));
    try {
      read_configuration(file);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
  TemporaryDirectory folder_;
};

TEST_F(Refused, NamesFieldValueAndRemedy) {
  EXPECT_EQ(told(""), "accepted");
  EXPECT_THAT(told("  carrier_hiden: 3\n"), HasSubstr("carrier_hidden"));
  EXPECT_THAT(told("  lattice_width: 4\n"), HasSubstr("twice"));
  EXPECT_THAT(told("  convergence_threshold: 0\n"), HasSubstr("out_of_range"));
  EXPECT_THAT(told("  convergence_threshold: .nan\n"), HasSubstr("convergence_threshold"));
  EXPECT_THAT(told("  max_steps: 65536\n"), HasSubstr("max_steps"));
  EXPECT_THAT(told("  batch_size: 12\n  micro_batch: 5\n"), HasSubstr("divisor of batch_size, 12"));
  EXPECT_THAT(told("  batch_size: 12\n  micro_batch: 24\n"), HasSubstr("divisor"));
  EXPECT_THAT(told("  batch_size: 12\n  max_active_flows: 11\n"), HasSubstr("at least batch_size, 12"));
  EXPECT_THAT(told("  batch_size: many\n"), HasSubstr("wrong type"));
  EXPECT_THAT(told("  on_stop: keep\n"), HasSubstr("project, drop"));
  EXPECT_THAT(told("", "name: A B\nsource: b\nsummary: c\n"), HasSubstr("small letters"));
  EXPECT_THAT(told("", "name: a\nsummary: c\n"), HasSubstr("source"));
  EXPECT_THAT(told("", "name: a\nsource: b\nsummary: c\nmore: d\n"), HasSubstr("more"));
  EXPECT_THAT(told("", "name: [\n"), HasSubstr("YAML"));
}

TEST_F(Refused, AMissingLatticeAFolderWithoutFilesAndTwoOfOneName) {
  write_file(folder_.file("a.yaml"), as_bytes("name: a\nsource: b\nsummary: c\n"));
  EXPECT_THROW(read_configuration(folder_.file("a.yaml")), Error);
  EXPECT_THROW(read_configurations(folder_.file("none")), Error);
  const std::string text =
      "name: a\nsource: b\nsummary: c\n"
      "fields: {lattice_width: 2, lattice_height: 2, lattice_depth: 2}\n";
  write_file(folder_.file("a.yaml"), as_bytes(text));
  write_file(folder_.file("b.yaml"), as_bytes(text));
  try {
    read_configurations(folder_.path());
    FAIL() << "two of one name were read";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("also the name of"));
  }
}

}  // namespace
}  // namespace twinbench::energy_flow
