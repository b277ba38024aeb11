// Counting and modelling of single cells.
#include "harness/command/kernel_cells.h"

#include <algorithm>

#include "harness/compare/inputs.h"
#include "harness/simt/counting/kernel_summary.h"
#include "harness/simt/counting/launch_counter.h"
#include "harness/simt/host_orders.h"
#include "src/common/device_event.h"
#include "src/common/error.h"
#include "src/common/filter_pattern.h"

namespace twinbench {
namespace {

constexpr double kMostFlops = 5e9;              // of a cell whose launches are counted whole
constexpr std::uint64_t kFewThreads = 1 << 11;  // of a launch beyond that: blocks of a uniform grid stand for all

std::vector<std::string>& products_seen() {
  static std::vector<std::string> seen;
  return seen;
}

// While one lives, products of the library are noted by name.
class WatchProducts {
 public:
  WatchProducts() {
    products_seen().clear();
    previous_ = device_event_observer.exchange([](DeviceEvent event, const std::string& name) {
      if (event == DeviceEvent::kProduct) products_seen().push_back(name);
    });
  }
  ~WatchProducts() { device_event_observer = previous_; }
  WatchProducts(const WatchProducts&) = delete;
  WatchProducts& operator=(const WatchProducts&) = delete;

 private:
  DeviceEventObserver previous_;
};

double footprint(const CountedCell& cell) {
  double bytes = 0;
  for (const auto& launch : cell.launches) {
    const double grid = static_cast<double>(launch.grid.x) * launch.grid.y * launch.grid.z;
    bytes += 32 * (launch.read_sectors_of_grid + static_cast<double>(launch.written_sectors) * grid /
                                                     static_cast<double>(std::max<std::uint64_t>(1, launch.blocks)));
  }
  return std::max(bytes, cell.cost.bytes);
}

// Runs repeat on the same tensors: what fits into half of L2 is still there.
bool stays_in_l2(const model::Card& card, const CountedCell& cell) { return footprint(cell) < card.l2_bytes / 2; }

double floor_seconds(const model::Card& card, const CountedCell& cell) {
  const double rate = cell.dtype == Dtype::kBf16   ? card.gemm_bf16
                      : cell.dtype == Dtype::kTf32 ? card.gemm_tf32
                                                   : card.gemm_fp32;
  const double bandwidth = stays_in_l2(card, cell) ? card.l2_bandwidth : card.copy_bandwidth;
  return std::max(cell.cost.bytes / bandwidth, cell.cost.flops / rate);
}

// No version can be faster, whatever it moves: products of warps or of the library at the tensor cores' rate, else FMA.
double arithmetic_seconds(const model::Card& card, const CountedCell& cell) {
  bool multiplies = false;
  for (const auto& launch : cell.launches) multiplies |= launch.bf16_products + launch.tf32_products > 0;
  const double fma = 2 * card.fma_lanes * card.multiprocessors * card.clock;
  const double rate = cell.dtype == Dtype::kBf16 || cell.dtype == Dtype::kFp16 ? card.gemm_bf16
                      : cell.dtype == Dtype::kTf32 || multiplies               ? card.gemm_tf32
                                                                               : fma;
  return cell.cost.flops / rate;
}

}  // namespace

std::vector<Cell> kernel_cells(const std::string& pattern) {
  const FilterPattern expression(pattern);
  std::vector<Cell> cells;
  for (const Component& component : components())
    for (const Case& input_case : component.spec.cases)
      for (const Dtype dtype : component.spec.dtypes) {
        const Cell cell{&component, Variant::kOptimized, Device::simt(), dtype, &input_case};
        if (!component.supports(Variant::kOptimized, Device::simt(), dtype) || !input_case.specimen.empty()) continue;
        if (expression.found_in(cell.name())) cells.push_back(cell);
      }
  if (cells.empty())
    throw Error(ErrorKind::kUnknownName, "--filter", pattern, "no cell of device simt matches it; leave it out");
  return cells;
}

std::string owner_of(const std::string& kernel) {
  const std::size_t end = kernel.rfind("::"), middle = kernel.find("::");
  if (middle == end) return "";
  const std::string id = kernel.substr(0, middle) + "." + kernel.substr(middle + 2, end - middle - 2);
  return std::ranges::any_of(components(), [&](const Component& one) { return one.spec.id() == id; }) ? id : "";
}

CountedCell count_cell(const Cell& cell, std::uint64_t seed, std::uint64_t most_threads,
                       const std::optional<std::string>& way) {
  const Setting setting = cell.setting();
  const NamedTensors inputs =
      placed_inputs(generated_inputs(cell.component->spec, setting, seed), setting.dtype, setting.device);
  CountedCell counted;
  if (cell.component->spec.cost) counted.cost = cell.component->spec.cost(setting);
  if (counted.cost.flops > kMostFlops) most_threads = std::min(most_threads, kFewThreads);
  const auto runnable = [&] {
    const ChoiceWatch watch(way);
    auto made = cell.component->make(cell.variant, inputs, setting);
    counted.choices = watch.made();
    return made;
  }();
  runnable->start_over();
  kernels::simt::LaunchCounter counter(most_threads);
  // One order for every cell, whatever ran before it: the last block, which finds words of its own, depends on it.
  kernels::simt::set_host_orders(kernels::simt::host_orders_named("forward"));
  {
    const kernels::simt::WatchLaunches watch(counter);
    const WatchProducts products;
    runnable->run();
    counted.products = products_seen();
  }
  counted.name = cell.name();
  counted.timed = cell.input_case->timed;
  counted.launches = counter.launches();
  counted.dtype = cell.dtype;
  return counted;
}

CellTime model_cell(const model::Card& card, const model::CompiledKernels& compiled, const CountedCell& cell) {
  CellTime result;
  result.card = card.name;
  result.floor = floor_seconds(card, cell);
  result.arithmetic = arithmetic_seconds(card, cell);
  const bool in_l2 = stays_in_l2(card, cell);
  for (const auto& launch : cell.launches) {
    const std::string kernel = kernels::simt::short_kernel_name(launch.kernel);
    const model::KernelFigures* figures = compiled.find(kernel, card.architecture);
    if (figures == nullptr) {
      result.unknown.push_back(kernel);
      continue;
    }
    model::LaunchWork work = work_of(launch, *figures);
    work.in_l2 = in_l2;
    result.known_share = std::min(result.known_share, work.known_share);
    result.parts.push_back({kernel, time_of(card, work), work});
  }
  for (const std::string& name : cell.products)
    result.parts.push_back({name, time_of(card, model::product_of(name)), {}});
  const CellTime::Part* longest = nullptr;
  for (const auto& part : result.parts) {
    result.seconds += part.time.seconds;
    if (longest == nullptr || part.time.seconds > longest->time.seconds) longest = &part;
  }
  if (longest != nullptr) result.limiter = longest->name + ": " + longest->time.limiter;
  return result;
}

}  // namespace twinbench
