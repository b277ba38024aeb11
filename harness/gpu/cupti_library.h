// The functions of CUPTI that tracing needs, found at run time.
#pragma once

#include <cupti.h>

#include "harness/gpu/library.h"

namespace twinbench {

// TWINBENCH_CUPTI_LIBRARY names another library than libcupti.so.13 (tests).
struct CuptiLibrary {
  CuptiLibrary();

  RuntimeLibrary library;
  decltype(&cuptiGetVersion) version = nullptr;
  decltype(&cuptiGetResultString) result_string = nullptr;
  decltype(&cuptiSubscribe) subscribe = nullptr;
  decltype(&cuptiUnsubscribe) unsubscribe = nullptr;
  decltype(&cuptiActivityRegisterCallbacks) register_callbacks = nullptr;
  decltype(&cuptiActivityEnable) enable = nullptr;
  decltype(&cuptiActivityDisable) disable = nullptr;
  decltype(&cuptiActivityFlushAll) flush_all = nullptr;
  decltype(&cuptiActivityGetNextRecord) next_record = nullptr;
  decltype(&cuptiActivityGetNumDroppedRecords) dropped_records = nullptr;
  decltype(&cuptiActivityEnableAllSyncRecords) enable_all_sync_records = nullptr;
  decltype(&cuptiGetTimestamp) timestamp = nullptr;
  decltype(&cuptiGetCallbackName) callback_name = nullptr;

  bool complete() const;
};

}  // namespace twinbench
