// Collection of one sample's flows (C11): a host map of cells, filled by four reads a flow.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <map>
#include <vector>

#include "baselines/energy_flow/common/flows.h"

namespace twinbench::energy_flow::flow_forward {

// One cell's flows, by their places among the sample's.
template <class Real>
struct Group {
  std::vector<std::size_t> flows;
  std::vector<at::Tensor> energies;
  std::vector<Real> weights;
  // How a weight changes with its energy, distance and age being constants (decision 16): 0 where the energy is.
  std::vector<Real> slopes;
  at::Tensor joined, shares, mean;  // energies [flows], their shares, [] the cell's value
};

template <class Real>
class Groups {
 public:
  Groups(const HostRules& rules, double start_depth, Book& book)
      : rules_(rules), start_depth_(start_depth), book_(book) {}

  // Flows that ended on a plane, or that the stop projects now.
  void add(std::size_t number, const Flow& flow) {
    if (flow.fate == Fate::kActive || flow.fate == Fate::kGone) return;
    const auto read = [](const at::Tensor& value) { return static_cast<Real>(value.item<double>()); };
    const Real z = read(flow.position.select(0, 2));
    Real distance = static_cast<Real>(flow.distance);
    if (flow.fate == Fate::kAtStop) {
      // A flow that has never moved is where it was placed, exactly.
      if (static_cast<double>(z) != start_depth_) book_.note(z);
      distance = Real(1) - std::abs(z);
      flow.position.select(0, 2).fill_(z <= 0 ? -1 : 1);
    }
    const Real energy = read(flow.energy);
    const std::int64_t column = cell_along(read(flow.position.select(0, 0)), rules_.width, book_),
                       row = cell_along(read(flow.position.select(0, 1)), rules_.height, book_);
    Group<Real>& group = groups_[row * rules_.width + column];
    // The age is among the host's own records: it counts the steps.
    const Real nearness = Real(1) / (Real(1) + distance), aged = Real(1) + Real(0.1) * age_of(flow);
    group.flows.push_back(number);
    group.energies.push_back(flow.energy);
    group.weights.push_back(std::abs(energy) * nearness * aged);
    group.slopes.push_back(energy > 0 ? nearness * aged : energy < 0 ? -nearness * aged : Real(0));
  }

  // Four operators a cell.
  void write(const at::Tensor& surface) {
    book_.stats[kCells] = static_cast<std::int32_t>(groups_.size());
    for (auto& [cell, group] : groups_) {
      group.joined = at::cat(group.energies);
      const at::Tensor weights = at::tensor(group.weights).to(group.joined.device());
      group.shares = at::softmax(weights, 0);
      group.mean = at::dot(group.shares, group.joined);
      surface.select(0, cell).add_(group.mean);
    }
  }

  const std::map<std::int64_t, Group<Real>>& cells() const { return groups_; }

 private:
  static Real age_of(const Flow& flow) { return static_cast<Real>(flow.steps); }

  const HostRules& rules_;
  const double start_depth_;
  Book& book_;
  std::map<std::int64_t, Group<Real>> groups_;
};

}  // namespace twinbench::energy_flow::flow_forward
