// Reads revision, toolchain and machine facts. What cannot be read is null or "unknown", never guessed.
#include "harness/record/provenance.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <dirent.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <torch/version.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iomanip>
#include <memory>
#include <sstream>
#include <thread>

#include "harness/record/source_folder.h"
#include "src/common/error.h"
#include "src/common/one_line.h"
#include "src/formats/text_file.h"
#include "src/golden_file.h"
#include "src/inputs.h"
#include "src/registry.h"

extern char** environ;

namespace twinbench {
namespace {

using nlohmann::json;

std::string first_line_of(const std::string& command) {
  std::string line;
  if (FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r")) {
    std::array<char, 512> buffer{};
    if (std::fgets(buffer.data(), buffer.size(), pipe)) line = buffer.data();
    pclose(pipe);
  }
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.pop_back();
  return line;
}

// The revision, or else "unknown", and on standard error why.
std::string revision_of_sources(const std::string& git) {
  std::string said;
  int status = -1;
  if (FILE* pipe = popen((git + "rev-parse --short=12 HEAD 2>&1").c_str(), "r")) {
    std::array<char, 512> buffer{};
    if (std::fgets(buffer.data(), buffer.size(), pipe)) said = buffer.data();
    status = pclose(pipe);
    if (said.empty()) said = "git said nothing and ended with status " + std::to_string(status);
  } else {
    said = std::strerror(errno);
  }
  said = one_line(said.substr(0, said.find('\n')));
  if (status == 0) return said;
  std::fprintf(stderr, "twinbench: the revision is unknown: %s; set TWINBENCH_REVISION, or let git be found\n",
               said.c_str());
  return "unknown";
}

std::string file_field(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.rfind(key, 0) == 0) {
      auto value = line.substr(line.find_first_of("=:") + 1);
      value.erase(0, value.find_first_not_of(" \t\""));
      while (!value.empty() && value.back() == '"') value.pop_back();
      return value;
    }
  return "";
}

json or_null(const std::string& text) { return text.empty() ? json(nullptr) : json(text); }

std::string utc_now() {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::ostringstream text;
  text << std::put_time(std::gmtime(&now), "%Y-%m-%dT%H:%M:%SZ");
  return text.str();
}

// "crc32:xxxxxxxx" over a folder's files, so that a changed baseline is seen; null where the sources are not here.
// Not by std::filesystem: LibTorch's own copy of its iterator ends the process where memory is refused.
std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> paths;
  const std::unique_ptr<DIR, int (*)(DIR*)> opened(::opendir(folder.c_str()), &::closedir);
  if (!opened && errno != ENOENT && errno != ENOTDIR)
    throw Error(ErrorKind::kInputOutput, folder, std::strerror(errno), "free descriptors, or make it readable");
  while (const dirent* const entry = opened ? ::readdir(opened.get()) : nullptr) {
    struct stat status {};
    const std::string path = folder + "/" + entry->d_name;
    if (::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)) paths.push_back(path);
  }
  return paths;
}

json hash_of_folder(const std::string& folder) {
  std::vector<std::string> paths = files_in(std::string(kSourceFolder) + "/" + folder);
  if (paths.empty()) return nullptr;
  std::sort(paths.begin(), paths.end());
  uLong crc = crc32(0L, Z_NULL, 0);
  for (const auto& path : paths) {
    const std::string text = read_text_file(path, "source");
    crc = crc32(crc, reinterpret_cast<const Bytef*>(text.data()), static_cast<uInt>(text.size()));
  }
  std::ostringstream hex;
  hex << "crc32:" << std::hex << std::setw(8) << std::setfill('0') << crc;
  return hex.str();
}

json source_hashes() {
  json hashes = json::object();
  for (const auto& component : components()) {
    const auto place = component.spec.pipeline + "/" + component.spec.name;
    hashes[component.spec.id()] = {{"baseline", hash_of_folder("baselines/" + place)},
                                   {"optimized", hash_of_folder("optimized/" + place)},
                                   {"kernel", hash_of_folder("kernels/" + place)}};
  }
  return hashes;
}

// Asked of the registry, so that this file is the same object in a build with CUDA and in one without.
bool built_with_cuda() {
  return std::any_of(components().begin(), components().end(), [](const Component& component) {
    return component.supports(Variant::kOptimized, c10::DeviceType::CUDA, component.spec.dtypes.front());
  });
}

json relevant_environment() {
  json variables = json::object();
  const std::vector<std::string> prefixes = {"TWINBENCH_", "OMP_",        "GOMP_",    "MKL_",   "CUDA_",
                                             "CUBLAS_",    "NVIDIA_TF32", "PYTORCH_", "GTEST_", "BENCHMARK_",
                                             "KMP_",       "ATEN_",       "NO_COLOR"};
  for (char** entry = environ; *entry; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    for (const auto& prefix : prefixes)
      if (text.rfind(prefix, 0) == 0) variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return variables;
}

}  // namespace

json provenance(std::uint64_t seed, const std::string& command_line) {
  const std::string git = std::string("git -C '") + kSourceFolder + "' ";
  // A bundle says what it was built from: where it runs, the build machine's folder is missing or something else.
  const char* bundled = std::getenv("TWINBENCH_REVISION");
  std::string revision = bundled && *bundled ? bundled : revision_of_sources(git);
  const bool dirty = bundled && *bundled ? revision.find("-dirty") != std::string::npos
                                         : !first_line_of(git + "status --porcelain").empty();
  utsname system{};
  uname(&system);
  const bool in_container = access("/.dockerenv", F_OK) == 0;
  return {{"revision", revision},
          {"dirty", dirty},
          {"utc", utc_now()},
          {"build_type", TWINBENCH_BUILD_TYPE},
          {"compiler", "g++ " __VERSION__},
          {"compiler_flags", TWINBENCH_COMPILER_FLAGS},
          {"cxx_standard", std::to_string(__cplusplus)},
          {"libtorch", TORCH_VERSION},
          {"cuda_toolkit", built_with_cuda() ? json(TWINBENCH_CUDA_TOOLKIT) : json(nullptr)},
          {"cuda_runtime", nullptr},
          {"driver", or_null(file_field("/proc/driver/nvidia/version", "NVRM version"))},
          {"cudnn", nullptr},
          {"cpu_model", file_field("/proc/cpuinfo", "model name")},
          {"cpu_flags_used", at::get_cpu_capability()},
          {"cores", std::thread::hardware_concurrency()},
          {"threads", at::get_num_threads()},
          {"kernel", std::string(system.sysname) + " " + system.release},
          {"os", file_field("/etc/os-release", "PRETTY_NAME")},
          {"container", in_container ? json("docker") : json(nullptr)},
          {"governor", or_null(first_line_of("cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))},
          {"gpu", nullptr},
          {"seed", seed},
          {"environment", relevant_environment()},
          {"source_hashes", source_hashes()},
          {"command_line", command_line}};
}

json benchmark_context() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  std::array<double, 3> load{};
  if (getloadavg(load.data(), 3) != 3) load = {0, 0, 0};
  const std::string megahertz = file_field("/proc/cpuinfo", "cpu MHz");
  return {{"date", utc_now()},
          {"host_name", host.data()},
          {"executable", "twinbench"},
          {"num_cpus", std::thread::hardware_concurrency()},
          {"mhz_per_cpu", megahertz.empty() ? 0.0 : std::stod(megahertz)},
          {"cpu_scaling_enabled", access("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", R_OK) == 0},
          {"caches", json::array()},
          {"load_avg", load},
          {"library_version", "1.7.1"},
          {"library_build_type", "release"},
          {"json_schema_version", 1}};
}

namespace {

// What every variant compares in the case, and by which class; and of how many items, as batch_items of parity has it.
json case_row(const Component& component, const Case& input) {
  const auto& spec = component.spec;
  const Setting setting = Cell{&component, Variant::kBaseline, {}, spec.dtypes.front(), &input}.setting();
  json outputs = json::object();
  bool batched = false;
  for (const auto& output : outputs_of(spec.signature, setting)) {
    outputs[output.name] = output.tolerance.spec_class;
    batched = batched || output.batch_axis.has_value();
  }
  return {{"name", input.name},
          {"sizes", input.sizes},
          {"options", input.options},
          {"pass", to_string(input.pass)},
          {"timed", input.timed},
          {"degenerate", input.degenerate},
          {"distribution", input.distribution},
          {"outputs", outputs},
          {"items", batched && !spec.batch_size.empty() ? setting.size(spec.batch_size) : 0}};
}

// The checks of parity that a component has by what its specification declares.
json declared_checks(const ComponentSpec& spec) {
  json checks = json::array();
  if (has_worked_examples(spec)) checks.push_back("golden");
  if (!spec.refusals.empty()) checks.push_back("refusal");
  if (!spec.invariants.empty()) checks.push_back("invariant");
  if (!spec.relations.empty()) checks.push_back("relation");
  if (spec.signature.has_state()) checks.push_back("carried");
  return checks;
}

}  // namespace

json component_table() {
  json table = json::array();
  for (const auto& component : components()) {
    const auto& spec = component.spec;
    json row = {{"id", spec.id()},
                {"summary", spec.summary},
                {"source", spec.source},
                {"sin", spec.sin},
                {"regime", spec.regime}};
    for (const char* list : {"dtypes", "cases", "variants", "proof", "claims"}) row[list] = json::array();
    for (const auto dtype : spec.dtypes) row["dtypes"].push_back(to_string(dtype));
    for (const auto& input : spec.cases) row["cases"].push_back(case_row(component, input));
    row["checks"] = declared_checks(spec);
    row["variants"] = {"baseline", "optimized"};
    if (component.library) row["variants"].push_back("library");
    for (const auto& proof : spec.proof)
      row["proof"].push_back({{"counter", proof.counter}, {"formula", proof.formula}});
    for (const auto& claim : spec.claims)
      row["claims"].push_back({{"document", claim.document},
                               {"text", claim.text},
                               {"figure", claim.figure},
                               {"ratio", claim.ratio ? json(*claim.ratio) : json(nullptr)},
                               {"verdict", claim.verdict}});
    table.push_back(std::move(row));
  }
  return table;
}

}  // namespace twinbench
