// Which observer watches the launches of this OS thread.
#include "harness/simt/access_observer.h"

namespace twinbench::kernels::simt {
namespace {

thread_local AccessObserver* g_observer = nullptr;

}  // namespace

WatchLaunches::WatchLaunches(AccessObserver& observer) : previous_(g_observer) { g_observer = &observer; }
WatchLaunches::~WatchLaunches() { g_observer = previous_; }

AccessObserver* launch_observer() { return g_observer; }

}  // namespace twinbench::kernels::simt
