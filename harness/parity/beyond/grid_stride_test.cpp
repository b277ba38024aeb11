// Kernels whose threads stride over what their grid does not cover: launchers cap grids at sizes that no case reaches,
// so each such kernel runs here with its grid cut to two blocks and to one along every axis it strides, and must give
// what it gives uncut.
#define TWINBENCH_SIMT
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "harness/compare/inputs.h"
#include "harness/memory/tracked_allocator.h"
#include "harness/parity/reference.h"
#include "harness/parity/subject.h"
#include "harness/runner/components_in_turn.h"
#include "harness/simt/host_launch.h"
#include "src/common/error.h"
#include "src/inputs.h"

namespace twinbench {
namespace {

using kernels::simt::GridUse;
using kernels::simt::GridWatch;
using kernels::simt::PerAxis;

// A kernel and an axis: "energy_flow::flow_placement::Place y".
using Axis = std::string;

// Kernels that ask for their grid's extent along x to know their last block, or to place what each block leaves: most
// do not stride, for their launcher's grid covers everything.
const std::set<Axis> kNotCut = {
    "energy_flow::embedding_mapper::SurfaceBackward x",
    "sem::cayley::ForwardSingle x",
    "sem::cayley::ForwardSingleAnyWidth x",
    "sem::cayley::ForwardSplit x",
    "sem::cayley::ForwardSplitAnyWidth x",
    "sem::cayley::Parameters x",
    "sem::cayley::WideTurn x",
    "sem::lazy_gate::AdjointOne x",
    "sem::lazy_gate::AdjointTile x",
    "sem::lazy_gate::Edges x",
    "sem::lazy_gate::SolveOne x",
    "sem::lazy_gate::SolveTile x",
    // These stride, but leave a term a block, and another kernel adds up as many as the launcher counts on.
    "energy_flow::flow_backward::HeadColumns x",
    "energy_flow::flow_backward::HeadColumnsAnyWidth x",
    "energy_flow::flow_backward::NeuronBack x",
    "energy_flow::flow_backward::RoundedHeadColumns x",
    "energy_flow::flow_backward::RoundedHeadColumnsAnyWidth x",
    "energy_flow::simple_neuron::Backward x",
};
// Kernels whose blocks each add up what they stride over: the order of a sum hangs on the grid, so these are held to
// the oracle instead of to the bits.
const std::set<Axis> kSums = {
    "energy_flow::flow_backward::HeadColumns x", "energy_flow::flow_backward::HeadColumnsAnyWidth x",
    "energy_flow::flow_backward::NeuronBack x",  "energy_flow::optimizer::Norm x",
    "energy_flow::simple_neuron::Backward x",    "sem::complex_adamw::Norm x",
};
// Cases with sizes of their own, for kernels that have one block along an axis in every case but timed ones.
struct Larger {
  const char *component, *input_case;
  Sizes sizes;
};
const std::vector<Larger> kLarger = {
    {"energy_flow.embedding_mapper", "odd", {{"embedding", 600}, {"width", 30}, {"height", 20}}},
    {"energy_flow.embedding_mapper", "backward_odd", {{"embedding", 600}, {"width", 30}, {"height", 20}}},
    {"energy_flow.flow_backward", "segments", {{"samples", 9}, {"quota", 60}}},
    {"energy_flow.flow_forward", "heads_of_fours", {{"samples", 10}}},
    {"energy_flow.surface_collection", "atomic_maximum", {{"width", 20}, {"height", 15}, {"slots", 300}}},
    {"energy_flow.surface_collection", "backward_atomic", {{"width", 20}, {"height", 15}, {"slots", 300}}},
};

std::string without_top(const std::string& kernel) {
  const std::string prefix = "twinbench::";
  return kernel.rfind(prefix, 0) == 0 ? kernel.substr(prefix.size()) : kernel;
}
Axis name_of_axis(const std::string& kernel, std::size_t axis) { return without_top(kernel) + " " + "xyz"[axis]; }

NamedTensors outputs_of_run(const Component& component, const Setting& setting, const NamedTensors& inputs) {
  GuardScope poison;  // what no thread writes is not what an earlier run left there
  const auto runnable = component.make(Variant::kOptimized, inputs, setting);
  run_afresh(*runnable);
  return copied_outputs(*runnable);
}

// How one component's striding kernels fare.
struct Strides {
  std::map<Axis, unsigned> most_blocks;     // of all that ask for their extent, uncut
  std::map<Axis, std::set<unsigned>> held;  // cuts that were tried
  std::set<Axis> excused;                   // of kNotCut
  std::vector<std::string> broken;
};

// Empty, or how `cut` differs from `uncut`.
std::string difference(const Reference& reference, const NamedTensors& uncut, const NamedTensors& cut, bool sums) {
  if (!sums)
    return first_bit_difference(without_measured(reference.outputs(), uncut),
                                without_measured(reference.outputs(), cut));
  CheckResult judged;
  reference.judge(cut, judged);
  return judged.reason;
}

// Runs the case uncut, judges that, then runs it with each cut that `strides` has not seen yet, one at a time.
void stride_one(const Component& component, const Setting& setting, Strides& strides) {
  const NamedTensors generated = generated_inputs(component.spec, setting, 1);
  const NamedTensors inputs = placed_inputs(generated, setting.dtype, setting.device);
  std::map<std::string, GridUse> seen;
  NamedTensors uncut;
  {
    const GridWatch watch;
    uncut = outputs_of_run(component, setting, inputs);
    seen = watch.seen();
  }
  std::optional<Reference> reference;
  bool told = true;  // close decisions may set all of a draw's results aside: the bits are compared all the same
  const auto breaks = [&](const std::string& what, const std::string& how) {
    if (!how.empty()) strides.broken.push_back(what + " in " + setting.input_case.name + ": " + how);
  };
  for (const auto& [kernel, use] : seen)
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const Axis name = name_of_axis(kernel, axis);
      if (!use.asks_extent[axis]) continue;
      if (kNotCut.count(name)) {
        strides.excused.insert(name);
        continue;
      }
      strides.most_blocks[name] = std::max(strides.most_blocks[name], use.most_blocks[axis]);
      for (const unsigned blocks : {2u, 1u}) {
        if (use.most_blocks[axis] <= blocks || !strides.held[name].insert(blocks).second) continue;
        if (!reference) {
          reference.emplace(component, setting, generated);
          CheckResult judged;  // parity on simt leaves out what takes it long
          reference->judge(uncut, judged);
          told = judged.reason.rfind("invalid case", 0) != 0;
          if (told) breaks("uncut", judged.reason);
        }
        const bool sums = kSums.count(name) > 0;
        if (sums && !told) {
          strides.held[name].erase(blocks);
          continue;
        }
        try {
          GridWatch::Cuts cuts;
          cuts[kernel][axis] = blocks;
          const GridWatch watch(cuts);
          breaks(name + " cut to " + std::to_string(blocks),
                 difference(*reference, uncut, outputs_of_run(component, setting, inputs), sums));
        } catch (const Error& error) {
          breaks(name + " cut to " + std::to_string(blocks), error.what());
        }
      }
    }
}

// Over every case that is not timed, also those that parity on simt leaves out for their size.
Strides strides_of(const Component& component) {
  Strides strides;
  for (const Dtype dtype : component.spec.dtypes) {
    if (!component.supports(Variant::kOptimized, Device::simt(), dtype)) continue;
    const auto run = [&](const Case& one) {
      stride_one(component, completed(component.spec.signature, {one, dtype, Device::simt()}), strides);
    };
    for (const Case& one : component.spec.cases) {
      if (!one.timed && one.specimen.empty()) run(one);
      for (const Larger& larger : kLarger) {
        if (component.spec.id() != larger.component || one.name != larger.input_case) continue;
        Case other = one;
        for (const auto& [size, value] : larger.sizes) other.sizes[size] = value;
        run(other);
      }
    }
  }
  return strides;
}

// A kernel that a component takes from another one is that one's to show at a size at which it strides.
bool is_of_another(const Axis& name, const Component& component) {
  const auto& all = components();
  return std::any_of(all.begin(), all.end(), [&](const Component& other) {
    return &other != &component && name.rfind(other.spec.pipeline + "::" + other.spec.name + "::", 0) == 0;
  });
}

TEST(GridStride, EveryStridingKernelGivesTheSameOnAGridCutShort) {
  std::set<Axis> excused;
  std::map<Axis, unsigned> most_of_shared;
  std::size_t striding = 0, all = 0;
  for (const Component& component : components()) all += component.has_kernel;
  const auto chosen = components_in_turn(6, [](const Component& one) { return one.has_kernel; });
  for (const Component* const component : chosen) {
    const Strides strides = strides_of(*component);
    for (const std::string& broken : strides.broken) ADD_FAILURE() << component->spec.id() << ": " << broken;
    for (const auto& [name, most] : strides.most_blocks) {
      if (is_of_another(name, *component)) continue;
      if (name.rfind("kernels::", 0) == 0) {  // one of all: some component shows it
        unsigned& largest = most_of_shared[name];
        largest = std::max(largest, static_cast<unsigned>(most));
        continue;
      }
      EXPECT_GT(most, 1u) << name << " strides, and has one block in every case: give it larger sizes above";
    }
    striding += strides.most_blocks.size();
    excused.insert(strides.excused.begin(), strides.excused.end());
  }
  if (chosen.size() < all) return;
  for (const auto& [name, most] : most_of_shared) EXPECT_GT(most, 1u) << name << " has one block in every component";
  EXPECT_GE(striding, 39u);
  EXPECT_EQ(excused, kNotCut) << "one of these no longer asks for its extent, or no case launches it";
}

// A row's elements, rows by blocks: with a step that is right, too long, or that of the launcher's grid.
enum class Step { kRight, kOneTooLong, kOfLauncher };
template <Step kStep>
struct CopyRows {
  static constexpr int kMaxThreads = 32;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const float* from, float* to, unsigned rows) const {
    const unsigned extent = block.grid().y;
    const unsigned step = kStep == Step::kRight ? extent : kStep == Step::kOneTooLong ? extent + 1 : 5;
    for (unsigned row = block.index().y; row < rows; row += step)
      to[row * 32 + block.thread().x] = from[row * 32 + block.thread().x];
  }
};

// Whether 5 rows arrive, on a grid of a block a row, cut to `most` where that is not 0.
template <Step kStep>
bool arrives(unsigned most) {
  constexpr unsigned kRows = 5;
  std::vector<float> from(kRows * 32), to(kRows * 32, -1);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i);
  GridWatch::Cuts cuts;
  cuts[kernels::simt::kernel_name<CopyRows<kStep>>()] = PerAxis{0, most, 0};
  const GridWatch watch(cuts);
  kernels::simt::launch(CopyRows<kStep>{}, dim3(1, kRows), 32, 0, kernels::current_host_stream(),
                        static_cast<const float*>(from.data()), to.data(), kRows);
  const GridUse& use = watch.seen().begin()->second;
  EXPECT_EQ(use.most_blocks, (PerAxis{1, kRows, 1}));
  EXPECT_EQ(use.asks_extent, (std::array<bool, 3>{false, true, false}));
  return to == from;
}

TEST(GridStride, AWrongStepIsSeenOnACutGridAlone) {
  for (const unsigned most : {0u, 1u, 2u}) {
    EXPECT_TRUE(arrives<Step::kRight>(most));
    EXPECT_EQ(arrives<Step::kOneTooLong>(most), most == 0);
    EXPECT_EQ(arrives<Step::kOfLauncher>(most), most == 0);
  }
}

}  // namespace
}  // namespace twinbench
