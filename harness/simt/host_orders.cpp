// Orders by name and by run.
#include "harness/simt/host_orders.h"

#include <utility>

#include "kernels/common/launch_check.h"
#include "src/common/error.h"
#include "src/common/nearest_name.h"

namespace twinbench::kernels::simt {
namespace {

HostOrders& host_orders() {
  static HostOrders orders;
  return orders;
}

}  // namespace

void set_host_orders(HostOrders orders) {
  orders.first -= RunScope::current().number;  // may wrap: it is only added to again
  host_orders() = std::move(orders);
}

HostOrders host_orders_named(const std::string& name, std::uint64_t first) {
  if (name == "all") return {.first = first};
  std::vector<std::string> known = {"all"};
  for (const Order order : kAllOrders) {
    if (name == to_string(order)) return {.orders = {order}, .first = first};
    known.emplace_back(to_string(order));
  }
  throw Error(ErrorKind::kUnknownName, "--thread-order", name,
              "there are all, forward, reverse and shuffled" + did_you_mean(name, known));
}

HostOptions next_host_options() {
  const HostOrders& given = host_orders();
  const std::uint64_t run = given.first + RunScope::current().number;
  return {.order = given.orders[run % given.orders.size()], .seed = run};
}

}  // namespace twinbench::kernels::simt
