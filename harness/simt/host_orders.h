// In which orders the threads of the CUDA path run on the host (device simt).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/simt/executor.h"

namespace twinbench::kernels::simt {

// The n-th run() of an adapter from now on takes the n-th of these, over and over, from `first` on, which also seeds
// the shuffled one. All three unless set otherwise: checks that compare a cell's runs then compare the orders.
struct HostOrders {
  std::vector<Order> orders = {kAllOrders.begin(), kAllOrders.end()};
  std::uint64_t first = 0;
};
void set_host_orders(HostOrders orders);

// all, forward, reverse, shuffled; throws Error(kUnknownName).
HostOrders host_orders_named(const std::string& name, std::uint64_t first = 0);

// Of the run that is under way.
HostOptions next_host_options();

}  // namespace twinbench::kernels::simt
