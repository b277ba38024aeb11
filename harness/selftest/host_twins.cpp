// Twins as host components are: all data are given at set-up, so that a result that is remembered cannot be seen by
// changing them. Planted ones that remember, and correct ones near them.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "harness/selftest/cases.h"
#include "harness/selftest/row_scale.h"
#include "src/formats/file_io.h"

namespace twinbench::selftest {

namespace {

// Like dataset_file: set-up writes a file, a run reads it.
struct ReadsItsFile : RowScale {
  ReadsItsFile(const NamedTensors& inputs, const Setting& setting) : RowScale(inputs, setting) { write(own_path()); }
  void run() override { compute_file(own_path()); }

 protected:
  std::string own_path() const { return folder_.file("rows"); }
  void write(const std::string& path) const {
    const at::Tensor x = x_.contiguous();
    write_file(path, {static_cast<const std::uint8_t*>(x.const_data_ptr()), x.nbytes()});
  }
  void compute_file(const std::string& path) {
    std::vector<float> x(static_cast<std::size_t>(items_ * width_));
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const auto got = read(file, x.data(), x.size() * sizeof(float));
    close(file);
    if (got == static_cast<ssize_t>(x.size() * sizeof(float)))
      compute(x.data(), scale_.contiguous().const_data_ptr<float>(), y_.mutable_data_ptr<float>());
  }
  TemporaryDirectory folder_;
};

struct RemembersFirst : ReadsItsFile {
  using ReadsItsFile::ReadsItsFile;
  void run() override {
    if (!computed_) ReadsItsFile::run();
    computed_ = true;
  }
  bool computed_ = false;
};

// Across set-ups too: whoever has the same contents gets the same answer.
struct RemembersContents : ReadsItsFile {
  using ReadsItsFile::ReadsItsFile;
  void compute(const float* x, const float* scale, float* y) override {
    static auto* const answers = new std::map<std::vector<float>, std::vector<float>>;
    auto& answer = (*answers)[std::vector<float>(x, x + items_ * width_)];
    if (answer.empty()) {
      ReadsItsFile::compute(x, scale, y);
      answer.assign(y, y + items_ * width_);
    }
    std::copy(answer.begin(), answer.end(), y);
  }
};

// By what names a file: its path, its size and the second in which it was written.
struct RemembersPath : ReadsItsFile {
  RemembersPath(const NamedTensors& inputs, const Setting& setting) : ReadsItsFile(inputs, setting) { write(path()); }
  void run() override {
    static auto* const answers = new std::map<std::string, std::vector<float>>;
    struct stat status {};
    stat(path().c_str(), &status);
    auto& answer = (*answers)[path() + " " + std::to_string(status.st_size)];
    if (answer.empty()) {
      compute_file(path());
      answer.assign(y_.const_data_ptr<float>(), y_.const_data_ptr<float>() + y_.numel());
    }
    std::copy(answer.begin(), answer.end(), y_.mutable_data_ptr<float>());
  }
  static std::string path() {
    static auto* const folder = new TemporaryDirectory;  // of all set-ups
    return folder->file("rows");
  }
};

// By the address of an input, beyond a set-up too.
struct RemembersAddress : ReadsItsFile {
  using ReadsItsFile::ReadsItsFile;
  void run() override {
    static auto* const answers = new std::map<const void*, std::vector<float>>;
    auto& answer = (*answers)[x_.const_data_ptr()];
    if (answer.empty()) {
      ReadsItsFile::run();
      answer.assign(y_.const_data_ptr<float>(), y_.const_data_ptr<float>() + y_.numel());
    }
    std::copy(answer.begin(), answer.end(), y_.mutable_data_ptr<float>());
  }
};

// Near what is forbidden ---------------------------------------------------------------------------------------------

// Its first run maps what later runs read: memory and file are warm then, but the work is done each time.
struct WarmsUp : ReadsItsFile {
  using ReadsItsFile::ReadsItsFile;
  void run() override {
    if (workspace_.empty()) workspace_.resize(std::size_t{1} << 18);
    for (std::size_t i = 0; i < workspace_.size(); i += 1024) workspace_[i] += 1;
    ReadsItsFile::run();
  }
  std::vector<float> workspace_;
};

// Without items or state, but its data are read in run(), as the baseline reads them.
struct StopsAfterFirstRuns : RowScale {
  using RowScale::RowScale;
  void run() override {
    if (++runs_ <= 20) RowScale::run();
  }
  int runs_ = 0;
};

// The baseline of host components: its set-up takes the data.
std::unique_ptr<Runnable> takes_its_data(const NamedTensors& inputs, const Setting& setting) {
  NamedTensors own;
  for (const auto& [name, tensor] : inputs) own.set(name, tensor.clone());
  return row_scale_baseline(own, setting);
}

SelftestCase without_items(const std::string& name, const std::string& what, const std::string& caught_by,
                           Factory optimized, std::int64_t rows) {
  SelftestCase one{name, what, caught_by, row_scale_component(optimized), Variant::kOptimized, nullptr, {}};
  one.component.spec.batch_size.clear();
  one.setting = row_scale_setting(one.component, rows, 13);
  one.setting.input_case.timed = true;
  one.benched = true;
  return one;
}

SelftestCase host(const std::string& name, const std::string& what, const std::string& caught_by, Factory optimized) {
  SelftestCase one = without_items(name, what, caught_by, optimized, 10000);
  one.component.baseline = takes_its_data;
  return one;
}

}  // namespace

std::vector<SelftestCase> host_twins() {
  return {
      host("host_reads_its_file", "reads the file that its set-up wrote", "", make<ReadsItsFile>),
      host("host_warms_up", "its first run also takes memory that later runs keep", "", make<WarmsUp>),
      without_items("timed_without_items", "the plain twin of a component without items", "", make<RowScale>, 6),
      without_items("timed_without_items_stops", "computes in its first 20 runs only, of a microsecond each", "answers",
                    make<StopsAfterFirstRuns>, 6),
      host("host_remembers_first", "keeps the answer of its first run", "remembers", make<RemembersFirst>),
      host("host_remembers_contents", "keeps answers by contents, beyond a set-up too", "remembers",
           make<RemembersContents>),
      host("host_remembers_path", "keeps answers by the path and the size of a file", "answers", make<RemembersPath>),
      host("host_remembers_address", "keeps answers by the address of an input", "answers", make<RemembersAddress>),
  };
}

}  // namespace twinbench::selftest
