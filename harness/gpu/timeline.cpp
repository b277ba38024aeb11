// The sampling thread and the timeline as columns.
#include "harness/gpu/timeline.h"

namespace twinbench {

DeviceTimeline::DeviceTimeline(double period_s, const std::string& pci_bus_id,
                               std::chrono::steady_clock::time_point origin)
    : period_s_(period_s), origin_(origin), nvml_(std::make_unique<Nvml>(pci_bus_id)) {
  if (nvml_->ready()) thread_ = std::thread([this] { watch(); });
}

DeviceTimeline::~DeviceTimeline() { stop(); }

void DeviceTimeline::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(guard_);
    ending_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void DeviceTimeline::watch() {
  using Seconds = std::chrono::duration<double>;
  auto next = std::chrono::steady_clock::now();
  for (bool last = false;;) {
    const double now_s = Seconds(std::chrono::steady_clock::now() - origin_).count();
    samples_.push_back({now_s, nvml_->sample()});
    if (last) return;
    // From a fixed grid: a slow reading delays its own sample, not all later ones. Missed points are left out.
    while (next <= std::chrono::steady_clock::now())
      next += std::chrono::duration_cast<std::chrono::steady_clock::duration>(Seconds(period_s_));
    std::unique_lock lock(guard_);
    last = wake_.wait_until(lock, next, [this] { return ending_; });
  }
}

std::string DeviceTimeline::reason() const {
  if (nvml_->ready()) return "";
  const auto finding = nvml_->finding();
  return finding ? finding->text() : "";
}

nlohmann::json DeviceTimeline::to_json() const {
  if (!nvml_->ready()) return nullptr;
  nlohmann::json columns = {{"period_s", period_s_}, {"seconds", nlohmann::json::array()}};
  for (const auto& sample : samples_) {
    columns["seconds"].push_back(sample.seconds);
    const auto reading = twinbench::to_json(sample.reading);
    for (const auto& [name, value] : reading.items()) columns[name].push_back(value);
  }
  const bool counts_energy = !samples_.empty() && samples_.front().reading.energy_j && samples_.back().reading.energy_j;
  columns["energy_j"] = counts_energy
                            ? nlohmann::json(*samples_.back().reading.energy_j - *samples_.front().reading.energy_j)
                            : nlohmann::json(nullptr);
  return columns;
}

}  // namespace twinbench
