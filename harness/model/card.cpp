// Reading a card, constant by constant.
#include "harness/model/card.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "src/common/error.h"
#include "src/formats/json_text.h"

namespace twinbench::model {
namespace {

using nlohmann::json;

const std::map<std::string, double Card::*>& constants() {
  static const std::map<std::string, double Card::*> all = {{"multiprocessors", &Card::multiprocessors},
                                                            {"clock", &Card::clock},
                                                            {"copy_bandwidth", &Card::copy_bandwidth},
                                                            {"memory_latency", &Card::memory_latency},
                                                            {"l2_bandwidth", &Card::l2_bandwidth},
                                                            {"l2_bytes", &Card::l2_bytes},
                                                            {"l2_latency", &Card::l2_latency},
                                                            {"launch", &Card::launch},
                                                            {"block_start", &Card::block_start},
                                                            {"warps_in_flight", &Card::warps_in_flight},
                                                            {"schedulers", &Card::schedulers},
                                                            {"fma_lanes", &Card::fma_lanes},
                                                            {"special_lanes", &Card::special_lanes},
                                                            {"shared_latency", &Card::shared_latency},
                                                            {"arithmetic_latency", &Card::arithmetic_latency},
                                                            {"gemm_bf16", &Card::gemm_bf16},
                                                            {"gemm_tf32", &Card::gemm_tf32},
                                                            {"gemm_fp32", &Card::gemm_fp32},
                                                            {"gemm_unaligned", &Card::gemm_unaligned},
                                                            {"mma_bf16", &Card::mma_bf16},
                                                            {"mma_tf32", &Card::mma_tf32}};
  return all;
}

std::string text_of(const json& root, const char* key, const std::string& path) {
  if (!root.contains(key) || !root[key].is_string() || root[key].get<std::string>().empty())
    throw Error(ErrorKind::kBadFile, path, std::string(key) + " is missing or no text",
                "give the card its " + std::string(key));
  return root[key];
}

double constant_of(const json& root, const std::string& name, const std::string& path) {
  if (!root.contains(name))
    throw Error(ErrorKind::kBadFile, path, name + " is missing", "add {\"value\", \"unit\", \"source\"}");
  const json& row = root[name];
  if (!row.is_object() || !row.value("value", json()).is_number())
    throw Error(ErrorKind::kBadFile, path, name + " has no number as its value",
                "add {\"value\", \"unit\", \"source\"}");
  const double value = row["value"];
  if (!(value > 0) || !std::isfinite(value))
    throw Error(ErrorKind::kOutOfRange, path + ": " + name, row["value"].dump(), "a number above zero");
  for (const char* key : {"unit", "source"}) text_of(row, key, path + ": " + name);
  return value;
}

}  // namespace

Card load_card(const std::string& path) {
  const json root = read_json_file(path, "card");
  if (!root.is_object() || !root.value("constants", json()).is_object())
    throw Error(ErrorKind::kBadFile, path, "constants are missing", "an object of constants");
  Card card;
  card.name = text_of(root, "name", path);
  card.architecture = text_of(root, "architecture", path);
  for (const json& name : root.value("device_names", json::array())) card.device_names.push_back(name);
  for (const auto& [name, member] : constants()) card.*member = constant_of(root["constants"], name, path);
  for (const auto& [name, row] : root["constants"].items())
    if (!constants().count(name)) throw Error(ErrorKind::kBadFile, path, name, "no constant of the model: remove it");
  return card;
}

std::vector<Card> load_cards(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed))
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  if (paths.empty()) throw Error(ErrorKind::kBadFile, folder, "holds no card", "run from the repository's root");
  std::sort(paths.begin(), paths.end());
  std::vector<Card> cards;
  for (const std::string& path : paths) cards.push_back(load_card(path));
  return cards;
}

}  // namespace twinbench::model
