// Looks CUPTI's functions up by name.
#include "harness/gpu/cupti_library.h"

namespace twinbench {

CuptiLibrary::CuptiLibrary() : library("TWINBENCH_CUPTI_LIBRARY", {"libcupti.so.13"}) {
  library.find("cuptiGetVersion", version);
  library.find("cuptiGetResultString", result_string);
  library.find("cuptiSubscribe", subscribe);
  library.find("cuptiUnsubscribe", unsubscribe);
  library.find("cuptiActivityRegisterCallbacks", register_callbacks);
  library.find("cuptiActivityEnable", enable);
  library.find("cuptiActivityDisable", disable);
  library.find("cuptiActivityFlushAll", flush_all);
  library.find("cuptiActivityGetNextRecord", next_record);
  library.find("cuptiActivityGetNumDroppedRecords", dropped_records);
  library.find("cuptiActivityEnableAllSyncRecords", enable_all_sync_records);
  library.find("cuptiGetTimestamp", timestamp);
  library.find("cuptiGetCallbackName", callback_name);
}

bool CuptiLibrary::complete() const {
  return version && result_string && subscribe && unsubscribe && register_callbacks && enable && disable && flush_all &&
         next_record && dropped_records && enable_all_sync_records && timestamp && callback_name;
}

}  // namespace twinbench
