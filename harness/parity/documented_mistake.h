// How wrong a documented mistake is: what a specimen must look like, as data beside it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "harness/parity/check_result.h"
#include "harness/parity/reference.h"

namespace twinbench {

// One wrong output beside the right one r, over the elements where both are finite: ||y - r|| / ||r||, how much of r
// is in it, <y, r> / <r, r> (1: all; -1: the sign is wrong; 0: nothing), and what else is, ||y - scale r|| / ||r|| (0:
// it is r, made larger or smaller). 1e30 where r is zero and y is not, and where there are more or fewer values than
// there should be, as of a text.
struct Wrongness {
  double error = 0, scale = 0, beside = 0;
  double not_finite = 0;  // share of the elements where y alone is not
};
Wrongness wrongness(const at::Tensor& wrong, const at::Tensor& right);

// "specimens" of spec.json: {"<case>": {"<output>": {"error": [low, high], "scale": [low, high]}}}; "not_finite" where
// it is not 0, and "beside" where the others cannot tell the mistake from a right answer that is scaled. Null where the
// component has no such file or says nothing of the case.
nlohmann::json documented_mistake(const ComponentSpec& spec, const std::string& case_name);

// "; of x error 0.68, scale 0.54, beside 0.5, not_finite 0", of each output that is wrong.
std::string measured(const Reference& reference, const NamedTensors& outputs, const CheckResult& judged);

// Empty, or how the specimen's outputs are not the documented mistake: another output is wrong, one of these is right,
// or wrong by another measure. `judged`: what the comparison says of each output.
std::string other_mistake(const nlohmann::json& documented, const Reference& reference, const NamedTensors& outputs,
                          const CheckResult& judged);

}  // namespace twinbench
