// Expands the lists that CMake writes from the files below scenarios/. A file without its function is a link error.
#include "scenarios/runner/catalogue.h"

#include "src/common/error.h"
#include "src/common/nearest_name.h"

namespace twinbench {

#define TWINBENCH_EXPERIMENT(kind) \
  namespace experiments::kind {    \
  Experiment make_experiment();    \
  }
#define TWINBENCH_TRAINING_RUN(pipeline, run) \
  namespace pipeline::run {                   \
  RunSource make_source();                    \
  }
#include "scenarios/catalogue.inc"
#undef TWINBENCH_EXPERIMENT
#undef TWINBENCH_TRAINING_RUN

namespace {

Catalogue expand() {
  Catalogue all;
#define TWINBENCH_EXPERIMENT(kind)                                 \
  all.experiments.push_back(experiments::kind::make_experiment()); \
  all.experiments.back().name = #kind;
#define TWINBENCH_TRAINING_RUN(space, run)       \
  all.runs.push_back(space::run::make_source()); \
  all.runs.back().pipeline = #space;             \
  all.runs.back().name = #run;
#include "scenarios/catalogue.inc"
#undef TWINBENCH_EXPERIMENT
#undef TWINBENCH_TRAINING_RUN
  return all;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

const Experiment& Catalogue::experiment(const std::string& wanted, const std::string& field) const {
  std::vector<std::string> names;
  for (const auto& one : experiments) {
    if (one.name == wanted) return one;
    names.push_back(one.name);
  }
  throw Error(ErrorKind::kUnknownName, field, wanted,
              "the kinds of experiment are " + listed(names) + did_you_mean(wanted, names));
}

const RunSource& Catalogue::run(const std::string& id, const std::string& field) const {
  std::vector<std::string> names;
  for (const auto& one : runs) {
    if (one.id() == id) return one;
    names.push_back(one.id());
  }
  throw Error(ErrorKind::kUnknownName, field, id, "the training runs are " + listed(names) + did_you_mean(id, names));
}

const Catalogue& catalogue() {
  static const Catalogue all = expand();
  return all;
}

}  // namespace twinbench
