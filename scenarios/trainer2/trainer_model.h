// A two-phase training window wired from registry components: field, retrieval, metric and rotor update.
#pragma once

#include <memory>

#include "scenarios/runner/training_run.h"
#include "scenarios/trainer2/trainer_start.h"

namespace twinbench::trainer2 {

// A step of the run is a training window: the free phase, the nudge, the nudged phase on a copy of the field, the
// update of metric and angles by the difference, one commit to the bank. The baseline takes the steps of a phase in
// turn; the optimized run advances the field through the whole phase first, since nothing else is carried from step to
// step, and retrieves for all steps at once. Stages that are no components yet (forward stand-in C03, pooling C04,
// bank C05, LIoR C12, accumulation C13, nudge C17) are the same plain operators in every variant.
std::unique_ptr<TrainingRun> make_trainer_run(const ScenarioConfig& config, const RunSetting& setting,
                                              TrainerStart start);

}  // namespace twinbench::trainer2
