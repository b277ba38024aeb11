// The footprint model against what the optimized build holds: the tape that its pass back through the flow reads.
#include "scenarios/energy_flow/footprint.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/record/source_folder.h"
#include "src/energy_flow/common/flow_work.h"
#include "src/inputs.h"
#include "src/registry.h"

namespace twinbench::energy_flow {
namespace {

Configuration documented(const std::string& name) {
  return read_configuration(std::string(kSourceFolder) + "/configurations/energy_flow/" + name + ".yaml");
}

// Bytes of the tape of one micro-batch of which everything is kept and no flow ends before its age.
double measured_tape(const Configuration& c) {
  const Component& component = find_component("energy_flow.flow_backward");
  const ModelSizes sizes = sizes_of(c);
  Setting setting;
  setting.input_case.name = c.name;
  setting.input_case.pass = Pass::kBackward;
  setting.input_case.sizes = {{"samples", sizes.micro_batch},
                              {"height", c.count("lattice_height")},
                              {"width", c.count("lattice_width")},
                              {"quota", population_of(sizes).quota},
                              {"max_steps", sizes.steps},
                              {"hidden", sizes.hidden},
                              {"layers", sizes.layers},
                              {"features", sizes.features},
                              {"neuron_width", sizes.neuron_width},
                              {"energy_width", sizes.hidden / 2},
                              {"head_width", 64}};
  setting.input_case.options = {{"keep_everything", 1},
                                {"spawn", 0},
                                {"convergence_enabled", 0},
                                {"projection_age", static_cast<double>(sizes.steps)},
                                {"scale", 0.01},
                                {"smallest_scale", 0.01}};
  setting = completed(component.spec.signature, setting);
  const auto runnable =
      component.make(Variant::kOptimized, Device(), generate_inputs(component.spec, setting, 1), setting);
  runnable->run();
  const at::Tensor work = runnable->outputs()["work"];
  EXPECT_EQ(work[flow_backward::kTapeLeft].item<std::int64_t>(), 0);
  return work[flow_backward::kTapeBytes].item<double>();
}

// In a process of its own: threads that the passes start would be in the way of the tests that fork.
double measured_in_a_child(const Configuration& configuration) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    const double bytes = measured_tape(configuration);
    const bool told = !::testing::Test::HasFailure() && write(ends[1], &bytes, sizeof bytes) == sizeof bytes;
    _exit(told ? 0 : 1);
  }
  close(ends[1]);
  double bytes = -1;
  int status = -1;
  const bool told = read(ends[0], &bytes, sizeof bytes) == sizeof bytes;
  close(ends[0]);
  return waitpid(child, &status, 0) == child && status == 0 && told ? bytes : -1;
}

void expect_near_the_model(const Configuration& configuration) {
  const double modelled = footprint_of(configuration).optimized_tape, measured = measured_in_a_child(configuration);
  EXPECT_NEAR(measured / modelled, 1, 0.05) << configuration.name << ": " << measured << " bytes of " << modelled;
}

TEST(FootprintModel, TheTapesOfUnitAndDebugAreMeasured) {
  expect_near_the_model(documented("unit"));
  expect_near_the_model(documented("debug"));
}

// A row of its sixteen and four of its twenty steps: 0.1 GB.
TEST(FootprintModel, ARowOfExperimentIsMeasured) {
  Configuration row = documented("experiment_as_coded");
  row.fields["micro_batch"] = 1;
  row.fields["max_steps"] = 4;
  expect_near_the_model(row);
}

}  // namespace
}  // namespace twinbench::energy_flow
