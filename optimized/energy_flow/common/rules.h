// What decides the life of flows, the same in all samples.
#pragma once

#include <cstdint>

#include "kernels/energy_flow/common/flow_statistics.h"
#include "kernels/energy_flow/common/placement.h"
#include "kernels/energy_flow/common/stop_rule.h"
#include "optimized/energy_flow/common/rules_of.h"
#include "src/setting.h"

namespace twinbench::energy_flow::flow_forward {

enum class Spawn { kOff, kMovement, kGate };

struct Rules {
  explicit Rules(const Setting& s) : Rules(s, static_cast<std::int32_t>(s.option("memory_cleanup_interval"))) {}
  Rules(const Setting& s, std::int32_t cleanup)
      : stop{.threshold = s.option("convergence_threshold"),
             .max_steps = static_cast<std::int32_t>(s.size("max_steps")),
             .min_steps = static_cast<std::int32_t>(s.option("convergence_min_steps")),
             .patience = static_cast<std::int32_t>(s.option("convergence_patience")),
             .convergence = s.on("convergence_enabled")},
        movement(movement_rule(s)),
        spawn(static_cast<Spawn>(static_cast<int>(s.option("spawn")))),
        start_depth(flow_placement::start_depth(static_cast<std::int32_t>(s.option("depth")))),
        quota(static_cast<std::int32_t>(s.size("quota"))),
        width(static_cast<std::int32_t>(s.size("width"))),
        height(static_cast<std::int32_t>(s.size("height"))),
        cleanup_interval(cleanup) {}

  std::int32_t cells() const { return width * height; }
  std::int32_t placed() const { return quota < cells() ? quota : cells(); }
  // Flows of a sample that there can be.
  std::int32_t most_flows() const { return spawn == Spawn::kOff ? placed() : quota; }

  const StopRule stop;
  const flow_movement::Rule movement;
  const Spawn spawn;
  const float start_depth;
  const std::int32_t quota, width, height, cleanup_interval;
};

}  // namespace twinbench::energy_flow::flow_forward
