// Planted twins that give the right numbers in a wrong way: side effects, stray writes, hidden reads, memory, time.
#include <ATen/ops/empty.h>
#include <ATen/ops/tanh.h>

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "harness/memory/tracked_allocator.h"
#include "harness/selftest/cases.h"
#include "harness/selftest/project.h"

namespace twinbench::selftest {

namespace {

struct MutatesInput : RowScale {
  using RowScale::RowScale;
  void run() override {
    RowScale::run();
    x_.mutable_data_ptr<float>()[0] *= 0.5f;
  }
};

// One element past its output. Only between guard bands, so that the planted bug cannot hurt the process it runs in.
struct WritesPastTheEnd : RowScale {
  WritesPastTheEnd(const NamedTensors& inputs, const Setting& setting)
      : RowScale(inputs, setting), guarded_(TrackedAllocator::instance().guarding()) {}
  void compute(const float* x, const float* scale, float* y) override {
    RowScale::compute(x, scale, y);
    if (guarded_) y[items_ * width_] = 0;
  }
  bool guarded_;
};

// One element past its input, whose value it does not use: no bit of any answer tells.
struct ReadsPastTheEnd : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    RowScale::compute(x, scale, y);
    static_cast<void>(static_cast<const volatile float*>(x)[items_ * width_]);
  }
};

struct ReadsBeforeTheStart : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    RowScale::compute(x, scale, y);
    static_cast<void>(static_cast<const volatile float*>(scale)[-1]);
  }
};

// Adds into a workspace it never cleared: right only while fresh memory happens to be zero.
struct UninitialisedWorkspace : RowScale {
  UninitialisedWorkspace(const NamedTensors& inputs, const Setting& setting)
      : RowScale(inputs, setting), workspace_(at::empty({items_})), poisoned_(TrackedAllocator::instance().guarding()) {
    if (!poisoned_) workspace_.zero_();
  }
  void compute(const float* x, const float* scale, float* y) override {
    RowScale::compute(x, scale, y);
    const float* const left_over = workspace_.const_data_ptr<float>();
    for (std::int64_t i = 0; i < items_ * width_; ++i) y[i] += left_over[i / width_];
  }
  at::Tensor workspace_;
  bool poisoned_;
};

struct ExtraItem : RowScale {
  using RowScale::RowScale;
  void run() override {
    RowScale::run();
    last_ = y_.select(0, 0).select(0, 0).item().toDouble();
  }
  double last_ = 0;
};

struct ExtraAllocation : RowScale {
  using RowScale::RowScale;
  void run() override {
    const at::Tensor workspace = at::empty({items_, width_});
    RowScale::run();
  }
};

// 64 KiB from the plain heap: no tensor allocator sees it.
struct HeapInEveryRun : RowScale {
  using RowScale::RowScale;
  void run() override {
    std::vector<char> waste(65536);
    asm volatile("" : : "r"(waste.data()) : "memory");
    RowScale::run();
  }
};

struct MapsInEveryRun : RowScale {
  using RowScale::RowScale;
  void run() override {
    void* const pages = mmap(nullptr, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    RowScale::run();
    munmap(pages, 65536);
  }
};

struct LeaksOneBlock : RowScale {
  using RowScale::RowScale;
  void run() override {
    RowScale::run();
    kept_.push_back(at::empty({16}));
  }
  std::vector<at::Tensor> kept_;
};

// Keeps one block a set-up, out of reach of any run: every case leaves the process larger.
struct OutlivesItsCase : RowScale {
  OutlivesItsCase(const NamedTensors& inputs, const Setting& setting) : RowScale(inputs, setting) {
    static auto* kept = new std::vector<at::Tensor>;
    kept->push_back(at::empty({16}));
  }
};

struct ExtraDispatch : RowScale {
  using RowScale::RowScale;
  void run() override {
    RowScale::run();
    y_.mul_(1);
  }
};

// Recomputes every tenth row.
struct TenPercentSlower : RowScale {
  using RowScale::RowScale;
  void compute(const float* x, const float* scale, float* y) override {
    RowScale::compute(x, scale, y);
    for (std::int64_t row = 0; row < items_; row += 10)
      for (std::int64_t i = row * width_; i < (row + 1) * width_; ++i) y[i] = std::tanh(x[i]) * scale[row];
  }
};

// A baseline that somebody fixed: the speedup over it would be another number under the same name.
class BaselineWithoutSin : public Runnable {
 public:
  BaselineWithoutSin(const NamedTensors& inputs, const Setting&) : x_(inputs["x"]), scale_(inputs["scale"]) {}
  void run() override { y_ = at::tanh(x_).mul(scale_.unsqueeze(1)); }
  NamedTensors outputs() override { return {{"y", y_}}; }

 private:
  at::Tensor x_, scale_, y_;
};

SelftestCase plant(const std::string& name, const std::string& what, const std::string& caught_by, Factory optimized) {
  SelftestCase planted{name, what, caught_by, row_scale_component(optimized), Variant::kOptimized, nullptr, {}};
  planted.setting = row_scale_setting(planted.component, 6, 13);
  return planted;
}

}  // namespace

std::vector<SelftestCase> wrong_behaviour() {
  std::vector<SelftestCase> cases = {
      plant("mutated_input", "halves one element of its input", "input_mutation", make<MutatesInput>),
      plant("writes_past_the_end", "writes one element past its output", "guard_bands", make<WritesPastTheEnd>),
      plant("reads_past_the_end", "reads one element past an input and does not use it", "guard_bands",
            make<ReadsPastTheEnd>),
      plant("reads_before_the_start", "reads one element before an input and does not use it", "guard_bands",
            make<ReadsBeforeTheStart>),
      plant("uninitialised_workspace", "reads memory it never wrote", "guard_bands", make<UninitialisedWorkspace>),
      plant("extra_item", "reads one scalar a run", "proof", make<ExtraItem>),
      plant("extra_allocation", "allocates one block a run", "proof", make<ExtraAllocation>),
      plant("heap_in_every_run", "takes 64 KiB from the plain heap in every run", "pins", make<HeapInEveryRun>),
      plant("maps_in_every_run", "maps 64 KiB in every run", "pins", make<MapsInEveryRun>),
      plant("leak", "keeps one block a run", "growth", make<LeaksOneBlock>),
      plant("outlives_its_case", "keeps one block a set-up", "leak", make<OutlivesItsCase>),
      plant("extra_dispatch", "issues one operator more than is pinned", "pins", make<ExtraDispatch>),
      plant("baseline_without_sin", "the baseline no longer reads a scalar a row", "proof", make<RowScale>),
      plant("ten_percent_slower", "does a tenth of its work twice", "time", make<TenPercentSlower>),
  };
  for (auto& planted : cases)
    if (planted.name == "baseline_without_sin") planted.component.baseline = make<BaselineWithoutSin>;
  cases.back().setting = row_scale_setting(cases.back().component, 60, 256);
  cases.back().reference = make<RowScale>;
  return cases;
}

}  // namespace twinbench::selftest
