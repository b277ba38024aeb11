// Settings with sizes far beyond what any case has: what is cut off, wraps around or overflows there lies outside every
// listed case and nearly every held-out draw.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/registry.h"

namespace twinbench {

struct FarSetting {
  const Component* component = nullptr;
  std::shared_ptr<const Case> base;           // small; with drawn options, or as it is listed
  std::string drawn;                          // "", or the dtype and those options
  std::map<std::string, std::int64_t> sizes;  // that go far
  Dtype dtype = Dtype::kFp32;
  bool may_be_unstable = false;  // a number lies beyond all cases, as a step so long that a training goes astray

  Setting setting(Device device = {}) const;
  std::string name() const;  // "sem.cayley/tiny rows=17797; bf16; options beta 0.3"
};

constexpr double kMostFarElements = 300'000, kMostFarOperators = 10'000;

// Whether inputs have no more elements, and a run no more arithmetic, than some hundredths of a second take.
bool is_small_enough(const Component& component, const Setting& setting, double most_elements);

// The case called tiny, or the first.
const Case* tiny_of(const std::vector<const Case*>& cases);

// The far settings of every component with an optimized variant on the path of `device`, which `sample` (the revision)
// draws: sizes, and of `drawn` ones options and the case that they start from.
class FarSizes {
 public:
  // `most_elements` of a setting's inputs. `every`: from more of the small cases.
  FarSizes(Device device, double most_elements, std::string sample, bool every)
      : device_(device), most_elements_(most_elements), sample_(std::move(sample)), every_(every) {}

  // Each `together` sizes of small cases of each pass, as yet of length 0: of the case called tiny and of one of middle
  // size in fp32, or, `drawn`, of one in turn in each dtype.
  std::vector<FarSetting> settings(const std::vector<const Component*>& components, std::size_t together, bool drawn);

  // One size as far as the limits allow, if that is further than any small case; more than one beyond a hundred each,
  // drawn ones beyond 32 each and at most 3,000, less where they are too large together. `whole`: multiples of that:
  // of sizes that go with others (heads that divide a width) only some settings are any. False where that is not to be
  // had.
  bool extend(FarSetting& far, std::int64_t whole);

 private:
  FarSetting drawn_setting(const Component& component, const std::vector<const Case*>& cases, Dtype dtype,
                           const std::string& sizes);
  bool fits(const FarSetting& far);
  bool extend_one(FarSetting& far, std::int64_t whole);
  bool extend_all(FarSetting& far, std::int64_t whole);
  // Operators of one run of the baseline, which may go through what a size counts one by one: of the base, and how many
  // times as many at these sizes.
  double operators_of_base(const FarSetting& far);
  double times_the_operators(const FarSetting& far);
  double more_operators(const FarSetting& far, const std::string& size);

  Device device_;
  double most_elements_;
  std::string sample_;
  bool every_;
  std::map<std::string, double> of_bases_, shares_;
};

}  // namespace twinbench
