// Components are set up anew where what they may prepare has changed: the field a phase, the rest a window.
#include "scenarios/trainer2/trainer_model.h"

#include <ATen/ATen.h>

#include "scenarios/runner/carried_state.h"
#include "src/common/error.h"
#include "src/registry.h"
#include "src/trainer2/common/rotor_planes.h"

namespace twinbench::trainer2 {
namespace {

constexpr double kSmallestLength = 1e-8;  // added to a squared length
constexpr float kNudgeScale = 0.1f;

// What a phase returns: means over its steps, those without an axis over its samples too.
struct Phase {
  at::Tensor lior, curvature, length;  // []
  at::Tensor velocity;                 // [batch, axes]
  at::Tensor mix, last_mix;            // [batch, width]: over the steps, of the last one
  at::Tensor last_query, last_state;   // [batch, axes], [batch, width]: of the last step's tokens, not nudged
  at::Tensor field, momentum;          // at the end
};

class TrainerRun final : public TrainingRun {
 public:
  TrainerRun(const ScenarioConfig& config, const RunSetting& setting, TrainerStart start)
      : config_(config), setting_(setting), start_(std::move(start)), equilibrium_(start_.field.clone()) {
    batch_ = setting.items == 0 ? size("batch") : std::min(setting.items, size("batch"));
    at_once_ = setting.variant == Variant::kBaseline ? 1 : size("steps");
    const auto floats = start_.embedding.options(), whole = start_.ids.options();
    const std::int64_t axes = size("axes"), per_layer = std::max<std::int64_t>(axes / 2, 1);
    const std::int64_t slots = (size("planes") + per_layer - 1) / per_layer * per_layer;
    planes_ = built_in_planes(slots, per_layer, axes).to(start_.ids.device());
    state_ = {{"field", start_.field},
              {"momentum", at::zeros_like(start_.field)},
              {"metric", at::ones({axes}, floats)},
              {"theta", at::zeros({size("planes")}, floats)},
              {"bank_coordinates", at::zeros({size("capacity"), axes}, floats)},
              {"bank_states", at::zeros({size("capacity"), size("width")}, floats)},
              {"filled", at::zeros({1}, whole)},
              {"pointer", at::zeros({1}, whole)},
              {"rejects", at::zeros({3}, whole)},  // in all, in a row, frozen
              {"window", at::zeros({1}, whole)}};
  }

  void step() override {
    const at::Tensor ids = batch_ids();
    Retrieval retrieval = make_retrieval();
    const at::Tensor no_nudge = at::zeros({batch_, size("axes")}, floats());
    const Phase free = phase(ids, no_nudge, retrieval);
    const at::Tensor nudge = at::mul(at::sub(target(ids), free.last_query), kNudgeScale);
    const Phase nudged = phase(ids, nudge, retrieval);
    if (update(free, nudged)) commit(free);
    state_["field"].copy_(free.field);
    state_["momentum"].copy_(free.momentum);
    state_["window"].add_(1);
    results_ = {{"act_mean_free", free.mix},
                {"act_last_free", free.last_mix},
                {"act_mean_nudged", nudged.mix},
                {"act_last_nudged", nudged.last_mix},
                {"lior_free", free.lior},
                {"lior_nudged", nudged.lior},
                {"curvature", free.curvature},
                {"length", free.length},
                {"query", free.last_query},
                {"nudge", nudge},
                {"metric", state_["metric"].clone()},
                {"theta", state_["theta"].clone()}};
  }

  NamedTensors state() override { return copies_of(state_); }
  void set_state(const NamedTensors& given) override { put_in_place(state_, given); }
  NamedTensors outputs() override { return results_; }
  std::optional<std::int64_t> item_axis(const std::string& tensor) const override {
    if (tensor.starts_with("act_") || tensor == "query" || tensor == "nudge") return 0;
    return std::nullopt;
  }
  std::int64_t items() const override { return batch_; }

 private:
  // The retrieval of `at_once_` steps: what a run reads anew, and the component.
  struct Retrieval {
    NamedTensors inputs;
    std::unique_ptr<Runnable> component;
  };

  std::int64_t size(const char* name) const { return config_.sizes.at(name); }
  at::TensorOptions floats() const { return start_.embedding.options(); }
  std::unique_ptr<Runnable> make(const char* id, const NamedTensors& inputs, const Sizes& sizes,
                                 const Options& options) const {
    Setting setting{{}, setting_.dtype, setting_.device};
    setting.input_case.name = config_.name;
    setting.input_case.sizes = sizes;
    setting.input_case.options = options;
    return find_component(id).make(setting_.variant, inputs, setting);
  }

  // The data set's batches in turn, from the first one again after the last whole one.
  at::Tensor batch_ids() const {
    const std::int64_t of_window = size("batch"), batches = size("sequences") / of_window;
    return start_.ids.narrow(0, state_["window"].item<std::int64_t>() % batches * of_window, batch_);
  }

  Retrieval make_retrieval() {
    const std::int64_t samples = at_once_ * batch_, tokens = size("tokens"), axes = size("axes");
    NamedTensors inputs = {{"query", at::zeros({samples, axes}, floats())},
                           {"curvature", at::zeros({samples}, floats())},
                           {"token_coordinates", at::zeros({samples, tokens, axes}, floats())},
                           {"token_states", at::zeros({samples, tokens, size("width")}, floats())},
                           {"mask", at::ones({samples, tokens}, floats())},
                           {"plane_axes", planes_},
                           {"inspected", at::zeros({0}, planes_.options())}};
    for (const char* name : {"bank_coordinates", "bank_states", "filled", "metric", "theta"})
      inputs.set(name, state_[name]);
    return {inputs, make("trainer2.fused_retrieval", inputs,
                         {{"batch", samples},
                          {"tokens", tokens},
                          {"capacity", size("capacity")},
                          {"width", size("width")},
                          {"axes", axes},
                          {"planes", size("planes")},
                          {"inspected", 0}},
                         {{"beta", config_.options.at("retrieval_beta")}})};
  }

  // The force of a nudge: on row i of the field the mean of axis i, where there is such an axis.
  std::unique_ptr<Runnable> make_field(const at::Tensor& nudge) {
    const std::int64_t dimension = size("dimension"), pushed = std::min(size("axes"), dimension);
    at::Tensor force = at::zeros({dimension}, floats());
    force.narrow(0, 0, pushed).copy_(at::div(at::sum(nudge, {0}), batch_).narrow(0, 0, pushed));
    return make(
        "trainer2.field_dynamics",
        {{"field", state_["field"]},
         {"momentum", state_["momentum"]},
         {"history", at::zeros({1}, planes_.options())},
         {"equilibrium", equilibrium_},
         {"force", force}},
        {{"width", size("grid_width")}, {"height", size("grid_height")}, {"dimension", dimension}, {"steps", at_once_}},
        {{"dt", config_.options.at("symplectic_dt")}});
  }

  // Tokens as states [steps, batch, tokens, width], from their embeddings and the field's summary [steps, dimension].
  at::Tensor forward(const at::Tensor& embedded, const at::Tensor& summary) const {
    const at::Tensor bias = at::matmul(summary, start_.from_field).view({summary.size(0), 1, 1, size("hidden")});
    const at::Tensor hidden = at::tanh(at::add(at::matmul(embedded, start_.into_hidden), bias));
    return at::add(embedded, at::matmul(hidden, start_.from_hidden));
  }

  // The first coordinates of states [..., width], as many as there are axes; zeros where there are fewer.
  at::Tensor coordinates(const at::Tensor& states) const {
    const std::int64_t given = std::min(size("axes"), size("width"));
    return at::constant_pad_nd(states.narrow(-1, 0, given), {0, size("axes") - given});
  }

  // sqrt(v' g v + eps) of rows [..., axes] in the rotor's frame.
  at::Tensor length(const at::Tensor& rows) const {
    at::Tensor rotated = rows.clone();
    const at::Tensor table = planes_.cpu();
    for (std::int64_t plane = 0; plane < size("planes"); ++plane) {
      const at::Tensor angle = state_["theta"].select(0, plane), cosine = at::cos(angle), sine = at::sin(angle);
      const at::Tensor a = rotated.select(-1, table[plane][0].item<std::int64_t>()),
                       b = rotated.select(-1, table[plane][1].item<std::int64_t>());
      const at::Tensor new_a = at::sub(at::mul(cosine, a), at::mul(sine, b));
      b.copy_(at::add(at::mul(sine, a), at::mul(cosine, b)));
      a.copy_(new_a);
    }
    return at::sqrt(at::add(at::sum(at::mul(at::mul(rotated, rotated), state_["metric"]), {-1}), kSmallestLength));
  }

  Phase phase(const at::Tensor& ids, const at::Tensor& nudge, Retrieval& retrieval) {
    const std::int64_t steps = size("steps"), tokens = size("tokens");
    const auto field = make_field(nudge);
    const at::Tensor embedded = start_.embedding.index_select(0, ids.reshape({-1})).view({batch_, tokens, -1});
    const auto elements = static_cast<double>(start_.field.numel());
    // Of the field as the next step finds it: sums of its moduli and means of its real part, by row.
    at::Tensor moduli = at::sum(at::abs(state_["field"]), {0, 1, 3}).unsqueeze(1),
               means = at::mean(at::real(state_["field"]), {0, 1, 3}).unsqueeze(1);
    Phase sum;
    for (std::int64_t done = 0; done < steps; done += at_once_) {
      field->run();
      const NamedTensors walked = field->outputs();
      moduli = at::cat({moduli, walked["row_modulus"]}, 1);
      means = at::cat({means, walked["row_mean"]}, 1);
      const at::Tensor curvature = at::div(at::sum(moduli.narrow(1, 0, at_once_), {0}), elements);  // [steps]
      const at::Tensor states = forward(embedded, means.narrow(1, 0, at_once_).t());
      moduli = moduli.narrow(1, at_once_, 1);
      means = means.narrow(1, at_once_, 1);
      const at::Tensor places = coordinates(states), pooled = at::div(at::sum(states, {2}), tokens);
      const at::Tensor query = coordinates(pooled), nudged = at::add(query, nudge);
      const auto& to = retrieval.inputs;
      to["query"].copy_(nudged.view_as(to["query"]));
      to["curvature"].copy_(at::repeat_interleave(curvature, batch_));
      to["token_coordinates"].copy_(places.view_as(to["token_coordinates"]));
      to["token_states"].copy_(states.view_as(to["token_states"]));
      retrieval.component->run();
      const at::Tensor mix = retrieval.component->outputs()["mix"].view({at_once_, batch_, -1});
      const at::Tensor lengths = length(nudged);  // [steps, batch]
      for (std::int64_t i = 0; i < at_once_; ++i) {
        const at::Tensor weight = curvature.select(0, i), spans = lengths.select(0, i);
        add(sum.lior, at::div(at::sum(at::mul(spans, weight)), batch_));
        add(sum.curvature, weight);
        add(sum.length, at::div(at::sum(spans), batch_));
        add(sum.velocity, nudged.select(0, i));
        add(sum.mix, mix.select(0, i));
      }
      sum.last_mix = mix.select(0, at_once_ - 1).clone();
      sum.last_query = query.select(0, at_once_ - 1);
      sum.last_state = pooled.select(0, at_once_ - 1);
    }
    const auto share = static_cast<double>(static_cast<float>(1.0 / static_cast<double>(steps)));
    for (at::Tensor* tensor : {&sum.lior, &sum.curvature, &sum.length, &sum.velocity, &sum.mix}) tensor->mul_(share);
    const NamedTensors end = field->outputs();
    sum.field = end["field"].clone();
    sum.momentum = end["momentum"].clone();
    return sum;
  }
  static void add(at::Tensor& sum, const at::Tensor& value) {
    if (sum.defined())
      sum.add_(value);
    else
      sum = value.clone();
  }

  // What the nudge aims at: the mean embedding of the tokens that follow, the last one following itself.
  at::Tensor target(const at::Tensor& ids) const {
    const std::int64_t tokens = size("tokens");
    const at::Tensor next = at::cat({ids.narrow(1, 1, tokens - 1), ids.narrow(1, tokens - 1, 1)}, 1);
    const at::Tensor raw = start_.embedding.index_select(0, next.reshape({-1})).view({batch_, tokens, -1});
    return at::div(at::sum(coordinates(raw), {1}), tokens);
  }

  // Metric, then angles, both by the velocity of the free phase. False where the metric's rule refused the window.
  bool update(const Phase& free, const Phase& nudged) {
    const std::int64_t axes = size("axes"), planes = size("planes");
    const Options options = {{"update_rate", config_.options.at("update_rate")}};
    const auto metric = make("trainer2.metric_update",
                             {{"metric", state_["metric"]},
                              {"coupling", at::zeros({axes / 2}, floats())},
                              {"rejects", state_["rejects"]},
                              {"velocity", free.velocity.unsqueeze(0).contiguous()},
                              {"lior_free", free.lior.view({1})},
                              {"lior_nudged", nudged.lior.view({1})},
                              {"theta", state_["theta"]},
                              {"plane_axes", planes_}},
                             {{"axes", axes}, {"batch", batch_}, {"planes", planes}, {"steps", 1}}, options);
    metric->run();
    const at::Tensor rejects = metric->outputs()["rejects"];
    const bool refused = !at::equal(rejects, state_["rejects"]) && rejects[1].item<std::int64_t>() > 0;
    const bool frozen = state_["rejects"][2].item<std::int64_t>() > 0;
    state_["rejects"].copy_(rejects);
    if (refused || frozen) return false;
    const auto rotor = make("trainer2.rotor_update",
                            {{"theta", state_["theta"]},
                             {"mean_velocity", at::div(at::sum(free.velocity, {0}, true), batch_)},
                             {"lior_change", at::sub(nudged.lior, free.lior).view({1})},
                             {"plane_axes", planes_}},
                            {{"axes", axes}, {"planes", planes}, {"steps", 1}}, options);
    rotor->run();
    state_["metric"].copy_(metric->outputs()["metric"]);
    state_["theta"].copy_(rotor->outputs()["theta"]);
    return true;
  }

  // The last rows of the batch, one after the other from the pointer on, over the oldest ones.
  void commit(const Phase& free) {
    const std::int64_t capacity = size("capacity"), taken = std::min(capacity, batch_);
    if (taken == 0) return;
    const auto pointer = state_["pointer"].item<std::int64_t>();
    const at::Tensor slots = at::remainder(at::add(at::arange(taken, planes_.options()), pointer), capacity);
    state_["bank_coordinates"].index_copy_(0, slots, free.last_query.narrow(0, batch_ - taken, taken));
    state_["bank_states"].index_copy_(0, slots, free.last_state.narrow(0, batch_ - taken, taken));
    state_["pointer"].fill_((pointer + taken) % capacity);
    state_["filled"].fill_(std::min(capacity, state_["filled"].item<std::int64_t>() + taken));
  }

  const ScenarioConfig config_;
  const RunSetting setting_;
  TrainerStart start_;
  at::Tensor equilibrium_, planes_;
  std::int64_t batch_ = 0, at_once_ = 1;  // samples, and steps that a component takes in one run
  NamedTensors state_, results_;
};

}  // namespace

std::unique_ptr<TrainingRun> make_trainer_run(const ScenarioConfig& config, const RunSetting& setting,
                                              TrainerStart start) {
  return std::make_unique<TrainerRun>(config, setting, std::move(start));
}

}  // namespace twinbench::trainer2
