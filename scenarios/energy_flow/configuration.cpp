// Fields of the flow model's configurations, and what holds between them.
#include "scenarios/energy_flow/configuration.h"

#include <algorithm>
#include <filesystem>

#include "src/common/error.h"

namespace twinbench::energy_flow {
namespace {

constexpr double kWidest = 65536, kLongestSide = 4096;  // sums of products of these are exact in 64 bits
constexpr std::int64_t kHalfTheLevels = -1;

Key switch_key(std::string name, bool otherwise, std::string meaning) {
  return choice_key(std::move(name), {"true", "false"}, std::move(meaning)).or_else(otherwise ? "true" : "false");
}

std::int64_t or_half_the_levels(const Configuration& configuration, const char* field) {
  const std::int64_t given = configuration.count(field);
  return given == kHalfTheLevels ? std::max<std::int64_t>(1, configuration.count("lattice_depth") / 2) : given;
}

void check(const Configuration& configuration) {
  check_plain_name(configuration.name, configuration.file + ": name");
  const std::int64_t batch = configuration.count("batch_size"), rows = configuration.count("micro_batch");
  if (rows != 0 && (rows > batch || batch % rows != 0))
    throw Error(ErrorKind::kOutOfRange, configuration.file + ": fields: micro_batch", std::to_string(rows),
                "give a divisor of batch_size, " + std::to_string(batch) + "; 0: the whole batch");
  if (configuration.count("max_active_flows") < configuration.count("batch_size"))
    throw Error(ErrorKind::kOutOfRange, configuration.file + ": fields: max_active_flows",
                std::to_string(configuration.count("max_active_flows")),
                "every row needs a flow: give at least batch_size, " + std::to_string(batch));
}

}  // namespace

std::int64_t Configuration::projection_age() const { return or_half_the_levels(*this, "projection_age"); }

std::int64_t Configuration::most_steps() const {
  const std::int64_t steps = or_half_the_levels(*this, "max_steps"), age = projection_age();
  return age > 0 ? std::min(steps, age) : steps;
}

const std::vector<Key>& configuration_fields() {
  static const std::vector<Key> fields = {
      count_key("lattice_width", 2, kLongestSide, "cells along x; the mapping to [-1, 1] divides by one less"),
      count_key("lattice_height", 2, kLongestSide, "cells along y"),
      count_key("lattice_depth", 2, kWidest, "levels along z"),
      count_key("max_active_flows", 1, 1e9, "slots of the flow storage").or_else(100000),
      count_key("max_spawn_per_step", 0, 1024, "children a flow may ask for").or_else(3),
      count_key("carrier_hidden", 2, kWidest, "of each recurrent layer").or_else(1024),
      count_key("carrier_layers", 1, 64, "recurrent layers").or_else(3),
      count_key("neuron_hidden", 1, kWidest, "of the neuron's inner layers").or_else(32),
      count_key("neuron_output", 1, kWidest, "features of a flow").or_else(64),
      count_key("embedding_width", 1, kWidest, "of the dataset's embeddings").or_else(768),
      count_key("batch_size", 1, 1e6, "rows of a step").or_else(32),
      count_key("micro_batch", 0, 1e6, "rows that are forwarded at once, a divisor of batch_size; 0: all").or_else(0),
      count_key("accumulation_steps", 1, 1e6, "batches of one optimizer step").or_else(1),
      switch_key("mixed_precision", true, "bf16 operands; else fp32"),
      choice_key("hidden_dtype", {"fp32", "bf16"}, "in which hidden states are kept").or_else("fp32"),
      switch_key("train_mapper", false, "the mapper has gradients too"),
      switch_key("text_bridge", true, "encoder, adapter and decoder are there"),
      real_key("text_loss_weight", 0, 1, "of the text bridge's loss").or_else(0.1),
      real_key("exploration_noise", 0, 10, "standard deviation of the noise on a move").or_else(0.1),
      real_key("spawn_threshold", 1e-6, 10, "length of a move that asks for children").or_else(0.1),
      choice_key("spawn_mode", {"movement", "gate"}, "what asks for children").or_else("movement"),
      real_key("spawn_gate", 0, 0.999999, "probability above which the gate asks for children").or_else(0.6),
      choice_key("boundary_mode", {"reflect", "kill"}, "what becomes of flows that leave the sides").or_else("reflect"),
      switch_key("convergence", true, "a row ends when enough of its flows have completed"),
      real_key("convergence_threshold", 1e-9, 1, "share of the created flows that must have completed").or_else(0.95),
      count_key("convergence_min_steps", 1, 65535, "steps before which nothing is asked").or_else(5),
      count_key("convergence_patience", 1, 65535, "looks without more completed flows that end a row").or_else(10),
      count_key("projection_age", kHalfTheLevels, 65535,
                "age at which a flow is projected; 0: never; -1: half of lattice_depth")
          .or_else(kHalfTheLevels),
      count_key("max_steps", kHalfTheLevels, 65535, "steps of a forward pass; -1: half of lattice_depth")
          .or_else(kHalfTheLevels),
      choice_key("on_stop", {"project", "drop"}, "what becomes of flows still active at the stop").or_else("project"),
      count_key("keep_state_every", 0, 65535, "steps between kept states, recomputed from; 0: everything is kept")
          .or_else(0),
      count_key("encoder_width", 1, kWidest, "of the text encoder").or_else(256),
      count_key("encoder_layers", 1, 64, "of the text encoder").or_else(2),
      count_key("encoder_inner", 1, kWidest, "of its feed-forward layers").or_else(512),
      count_key("encoder_words", 5, 1e6, "of its vocabulary").or_else(30522),
      count_key("encoder_positions", 1, kWidest, "that it knows").or_else(512),
      count_key("decoder_width", 1, kWidest, "of the text decoder").or_else(512),
      count_key("decoder_layers", 1, 64, "of the text decoder").or_else(6),
      count_key("decoder_inner", 1, kWidest, "of its feed-forward layers").or_else(2048),
      count_key("decoder_words", 5, 1e6, "of its vocabulary").or_else(32128)};
  return fields;
}

Configuration read_configuration(const std::string& file) {
  const YAML::Node root = read_yaml(file, "configuration");
  check_keys(root, file, {"name", "source", "summary", "fields"});
  YAML::Node head = YAML::Clone(root);
  head.remove("fields");
  const auto values = read_keys(
      head, file,
      {text_key("name", "a name"), text_key("source", "where the figures stand"), text_key("summary", "one sentence")});
  Configuration configuration{.file = file,
                              .name = values["name"],
                              .source = values["source"],
                              .summary = values["summary"],
                              .fields = read_keys(root["fields"], file + ": fields", configuration_fields())};
  check(configuration);
  return configuration;
}

std::vector<Configuration> read_configurations(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code failed;
  for (std::filesystem::recursive_directory_iterator it(folder, failed), end; !failed && it != end;
       it.increment(failed))
    if (it->path().extension() == ".yaml") files.push_back(it->path().string());
  if (files.empty())
    throw Error(ErrorKind::kInputOutput, "configuration folder", folder,
                "it holds no .yaml file; run from the repository's root or give --folder");
  std::sort(files.begin(), files.end());
  std::vector<Configuration> configurations;
  for (const auto& file : files) {
    auto configuration = read_configuration(file);
    for (const auto& other : configurations)
      if (other.name == configuration.name)
        throw Error(ErrorKind::kBadArgument, file + ": name", configuration.name,
                    "it is also the name of " + other.file + "; give each its own");
    configurations.push_back(std::move(configuration));
  }
  return configurations;
}

}  // namespace twinbench::energy_flow
