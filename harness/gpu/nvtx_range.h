// Names a stretch of time for Nsight: "<component>/<variant>/<device>/<dtype>/<case>/<phase>" in the domain
// "twinbench".
#pragma once

#include <string>

namespace twinbench {

// From construction to destruction, on the calling thread. Costs nothing measurable where no tool is attached.
class NvtxRange {
 public:
  // phase: setup, warm_up, timed, counted, traced, checked, ...
  NvtxRange(const std::string& cell, const char* phase);
  ~NvtxRange();
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
};

}  // namespace twinbench
