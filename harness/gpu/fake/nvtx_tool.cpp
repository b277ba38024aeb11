// A profiler that listens to NVTX and remembers the ranges: loaded by NVTX itself through NVTX_INJECTION64_PATH. Writes
// them to the file FAKE_NVTX_OUT too, a line each, where that is set: "+name" or "-".
#include <nvtx3/nvToolsExt.h>

#include <fstream>
#include <string>

#include "harness/gpu/fake/environment.h"

namespace {

std::string seen;  // "<domain>:+name" where a range opens, "-" where one closes
int domain_name_storage = 0;

void note(const std::string& what) {
  seen += what;
  const auto path = fake::text("FAKE_NVTX_OUT", "");
  if (!path.empty()) std::ofstream(path, std::ios::app) << what << '\n';
}

nvtxDomainHandle_t create_domain(const char* name) {
  seen += std::string(name) + ":";
  return reinterpret_cast<nvtxDomainHandle_t>(&domain_name_storage);
}
int push(nvtxDomainHandle_t, const nvtxEventAttributes_t* attributes) {
  note("+" + std::string(attributes->message.ascii));
  return 0;
}
int pop(nvtxDomainHandle_t) {
  note("-");
  return 0;
}

}  // namespace

extern "C" {

const char* fake_nvtx_seen() { return seen.c_str(); }

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  const auto* callbacks = reinterpret_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  if (!callbacks || !callbacks->GetModuleFunctionTable) return 0;
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (!callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size)) return 0;
  *table[NVTX_CBID_CORE2_DomainCreateA] = reinterpret_cast<NvtxFunctionPointer>(&create_domain);
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = reinterpret_cast<NvtxFunctionPointer>(&push);
  *table[NVTX_CBID_CORE2_DomainRangePop] = reinterpret_cast<NvtxFunctionPointer>(&pop);
  return 1;
}

}  // extern "C"
