// Ranges through NVTX3, which is header-only: a tool that is attached takes the calls, otherwise nobody does.
#include "harness/gpu/nvtx_range.h"

#include <nvtx3/nvToolsExt.h>

namespace twinbench {
namespace {

nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t handle = nvtxDomainCreateA("twinbench");
  return handle;
}

}  // namespace

NvtxRange::NvtxRange(const std::string& cell, const char* phase) {
  const std::string name = cell + "/" + phase;
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name.c_str();
  nvtxDomainRangePushEx(domain(), &attributes);
}

NvtxRange::~NvtxRange() { nvtxDomainRangePop(domain()); }

}  // namespace twinbench
