// Planted twins on simt, the CUDA path executed on the host: a launch that goes elsewhere, reads too far, or races.
#define TWINBENCH_SIMT
#include <cmath>

#include "harness/selftest/cases.h"
#include "harness/selftest/row_scale.h"
#include "harness/simt/host_launch.h"

namespace twinbench::selftest {

namespace {

// One row a block.
struct Rows {
  static constexpr int kMaxThreads = 32;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block, const float* x, const float* scale, float* y, int width,
                                   int read) const {
    const int row = static_cast<int>(block.index().x);
    float waste = 0;
    for (int i = static_cast<int>(block.thread().x); i < width; i += static_cast<int>(kMaxThreads)) {
      y[row * width + i] = std::tanh(x[row * width + i]) * scale[row];
      waste += x[row * width + i + read];
    }
    if (waste == 12345.0f) y[0] = waste;
  }
};

// All threads of a block write one element of shared memory, which nobody uses.
struct Race {
  static constexpr int kMaxThreads = 64;
  template <class Block>
  TWINBENCH_DEVICE void operator()(Block& block) const {
    kernels::simt::shared_array<float, 1>(block)[0] = static_cast<float>(block.thread().x);
  }
};

struct OnSimt : RowScale {
  using RowScale::RowScale;
  void run() override {
    const kernels::simt::RunScope on(kernels::current_host_stream());
    launch_rows(kernels::current_host_stream(), 0);
  }
  void launch_rows(kernels::Stream stream, int read) {
    const at::Tensor x = x_.contiguous(), scale = scale_.contiguous();
    kernels::simt::launch(Rows{}, static_cast<unsigned>(items_), Rows::kMaxThreads, 0, stream,
                          x.const_data_ptr<float>(), scale.const_data_ptr<float>(), y_.mutable_data_ptr<float>(),
                          static_cast<int>(width_), read);
  }
};

// What is timed and waited for is another stream.
struct OnOtherStream : OnSimt {
  using OnSimt::OnSimt;
  void run() override {
    static char other = 0;
    const kernels::simt::RunScope on(kernels::current_host_stream());
    launch_rows(reinterpret_cast<kernels::Stream>(&other), 0);
  }
};

struct ReadsTooFar : OnSimt {
  using OnSimt::OnSimt;
  void run() override {
    const kernels::simt::RunScope on(kernels::current_host_stream());
    launch_rows(kernels::current_host_stream(), static_cast<int>(width_));
  }
};

struct Races : OnSimt {
  using OnSimt::OnSimt;
  void run() override {
    OnSimt::run();
    const kernels::simt::RunScope on(kernels::current_host_stream());
    kernels::simt::launch(Race{}, 1, 64, 0, kernels::current_host_stream());
  }
};

// The host looks at a number of the device's before it launches.
struct HostReads : OnSimt {
  using OnSimt::OnSimt;
  void run() override {
    seen_ = *static_cast<const volatile float*>(x_.const_data_ptr<float>());
    OnSimt::run();
  }
  float seen_ = 0;
};

// The host puts an output right.
struct HostWrites : OnSimt {
  using OnSimt::OnSimt;
  void run() override {
    OnSimt::run();
    *static_cast<volatile float*>(y_.mutable_data_ptr<float>()) = y_.flatten()[0].item<float>();
  }
};

// Operators of LibTorch on the device's memory, before and after the kernel.
struct WithOperators : OnSimt {
  using OnSimt::OnSimt;
  void run() override {
    y_.zero_();
    OnSimt::run();
    y_.add_(x_.sub(x_));
  }
};

template <class Twin>
SelftestCase on_simt(const std::string& name, const std::string& what, const std::string& caught_by) {
  SelftestCase one{name, what, caught_by, row_scale_component(make<RowScale>), Variant::kOptimized, nullptr, {}};
  one.component.optimized_simt = make<Twin>;
  one.component.has_kernel = true;
  one.setting = row_scale_setting(one.component, 6, 13);
  one.setting.device = Device::simt();
  return one;
}

}  // namespace

std::vector<SelftestCase> simt_twins() {
  return {
      on_simt<OnSimt>("simt_plain", "the plain twin as a kernel", ""),
      on_simt<OnOtherStream>("simt_other_stream", "launches on a stream of its own", "oracle"),
      on_simt<ReadsTooFar>("simt_reads_too_far", "a kernel reads a row past its input and does not use it", "oracle"),
      on_simt<Races>("simt_races", "all threads of a block write one element", "oracle"),
      on_simt<HostReads>("simt_host_reads", "the host follows a pointer of the device to its input", "guard_bands"),
      on_simt<HostWrites>("simt_host_writes", "the host follows a pointer of the device to its output", "guard_bands"),
      on_simt<WithOperators>("simt_operators", "kernels between operators of LibTorch", ""),
  };
}

}  // namespace twinbench::selftest
