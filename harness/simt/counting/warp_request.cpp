// Sectors and wavefronts of a warp's access.
#include "harness/simt/counting/warp_request.h"

#include <algorithm>

namespace twinbench::kernels::simt {
namespace {

struct Sorted {
  std::array<std::uint64_t, kWarpSize> addresses;
  int count;
};

Sorted sorted(const WarpRequest32& request) {
  Sorted result{request.addresses, request.count};
  const auto end = result.addresses.begin() + result.count;
  if (!std::is_sorted(result.addresses.begin(), end)) std::sort(result.addresses.begin(), end);
  return result;
}

RequestCost common_cost(const WarpRequest32& request, const Sorted& order, std::vector<Interval>& touched) {
  RequestCost cost;
  touched.clear();
  int equal = 0;
  for (int i = 0; i < order.count; ++i) {
    const std::uint64_t begin = order.addresses[i], end = begin + request.bytes;
    equal = i > 0 && order.addresses[i - 1] == begin ? equal + 1 : 1;
    cost.most_on_one_address = std::max(cost.most_on_one_address, equal);
    cost.misaligned += begin % request.bytes != 0;
    if (!touched.empty() && begin <= touched.back().end)
      touched.back().end = std::max(touched.back().end, end);
    else
      touched.push_back({begin, end});
  }
  for (const Interval& interval : touched) cost.unique_bytes += interval.end - interval.begin;
  return cost;
}

// Wavefronts of lanes [first, last) of the warp: the most different words of one bank.
std::uint64_t bank_wavefronts(const WarpRequest32& request, int first, int last) {
  std::array<std::array<std::uint64_t, kWarpSize>, kWarpSize> words;  // of each bank
  std::array<int, kWarpSize> count{};
  int most = 0;
  for (int i = 0; i < request.count; ++i) {
    if (request.lanes[i] < first || request.lanes[i] >= last) continue;
    for (std::uint64_t word = request.addresses[i] / 4; word <= (request.addresses[i] + request.bytes - 1) / 4;
         ++word) {
      auto& bank = words[word % kWarpSize];
      int& used = count[word % kWarpSize];
      if (std::find(bank.begin(), bank.begin() + used, word) != bank.begin() + used) continue;
      bank[static_cast<std::size_t>(used++)] = word;
      most = std::max(most, used);
    }
  }
  return static_cast<std::uint64_t>(most);
}

// What most requests are: one address for all lanes, or all lanes' words one after the other from a multiple of their
// size on. `cost` then is as the general way below has it.
bool is_common_shared(const WarpRequest32& request, std::vector<Interval>& touched, RequestCost& cost) {
  const std::uint64_t first = request.addresses[0], bytes = request.bytes;
  if (first % bytes != 0 || request.count < 2) return false;
  const std::uint64_t step = request.addresses[1] - first;
  if (step != 0 && (step != bytes || request.count != kWarpSize || bytes < 4)) return false;
  for (int i = 2; i < request.count; ++i)
    if (request.addresses[i] != first + static_cast<std::uint64_t>(i) * step) return false;
  const auto lanes = static_cast<std::uint64_t>(request.count);
  cost.unique_bytes = step == 0 ? bytes : lanes * bytes;
  cost.most_on_one_address = step == 0 ? request.count : 1;
  cost.units = cost.ideal = (cost.unique_bytes + kWavefrontBytes - 1) / kWavefrontBytes;
  touched.assign(1, {first, first + cost.unique_bytes});
  return true;
}

}  // namespace

RequestCost cost_of_global(const WarpRequest32& request, std::vector<Interval>& touched) {
  RequestCost cost = common_cost(request, sorted(request), touched);
  std::uint64_t next = 0;  // the first sector not counted yet
  for (const Interval& interval : touched) {
    const std::uint64_t first = std::max(next, interval.begin / kSectorBytes);
    const std::uint64_t last = (interval.end - 1) / kSectorBytes;
    if (last >= first) cost.units += last - first + 1;
    next = last + 1;
  }
  cost.ideal = (cost.unique_bytes + kSectorBytes - 1) / kSectorBytes;
  return cost;
}

RequestCost cost_of_shared(const WarpRequest32& request, std::vector<Interval>& touched) {
  if (RequestCost common; is_common_shared(request, touched, common)) return common;
  RequestCost cost = common_cost(request, sorted(request), touched);
  cost.ideal = std::max<std::uint64_t>(1, (cost.unique_bytes + kWavefrontBytes - 1) / kWavefrontBytes);
  if (cost.most_on_one_address == request.count) {
    cost.units = 1;  // one address for all is told to all at once
    return cost;
  }
  const int together = request.bytes >= 16 ? 8 : request.bytes >= 8 ? 16 : kWarpSize;
  for (int first = 0; first < kWarpSize; first += together)
    cost.units += bank_wavefronts(request, first, first + together);
  return cost;
}

}  // namespace twinbench::kernels::simt
