// The selftest's stateful component: record, baseline, correct optimized twin, backward.
#include "harness/selftest/rotate.h"

#include <ATen/ATen.h>

#include <chrono>

#include "src/common/error.h"

namespace twinbench::selftest {

namespace {

at::Tensor from_planes(const at::Tensor& planes) { return at::complex(planes.select(0, 0), planes.select(0, 1)); }
at::Tensor planes_of(const at::Tensor& z) { return at::stack({at::real(z), at::imag(z)}, 0); }

void check_age(const NamedTensors& inputs) {
  const auto age = inputs["age"].item<std::int64_t>();
  if (age < 0) throw Error(ErrorKind::kOutOfRange, "age", std::to_string(age), "an age is at least 0");
}

// The sin: a new field and a new age every step. Any dtype; one backward for the gradient cases.
class StepByStep : public Runnable {
 public:
  StepByStep(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs),
        steps_(setting.size("steps")),
        sign_(setting.on("wrong_sign") ? -1 : 1),
        backward_(setting.backward()) {
    check_age(inputs);
    StepByStep::reset();
  }
  void reset() override {
    field_ = inputs_["field"];
    age_ = inputs_["age"];
  }
  void run() override {
    const at::Tensor turn = inputs_["turn"].unsqueeze(1), drive = from_planes(inputs_["drive"]);
    std::vector<at::Tensor> fields = {field_};
    for (std::int64_t step = 0; step < steps_; ++step) {
      field_ = at::add(at::mul(field_, turn), drive, sign_);
      age_ = at::add(age_, 1);
      fields.push_back(field_);
    }
    if (backward_) return run_backward(fields);
    const at::Tensor i_field = at::mul(field_, c10::complex<double>(0, 1));
    outputs_ = {{"field", field_},
                {"planes", planes_of(i_field)},
                {"energy", at::mul(at::sum(at::abs(field_).to(at::kDouble).square(), {1}), inputs_["limit"])},
                {"age", age_},
                {"seconds", at::full({1}, 1e-3, at::kDouble)}};
  }
  NamedTensors outputs() override { return outputs_; }

 private:
  void run_backward(const std::vector<at::Tensor>& fields) {
    const at::Tensor turn = inputs_["turn"].unsqueeze(1);
    at::Tensor gradient = inputs_["grad_field"] - from_planes(inputs_["grad_planes"]) * c10::complex<double>(0, 1);
    at::Tensor of_turn = at::zeros_like(inputs_["turn"]), of_drive = at::zeros_like(gradient);
    for (std::size_t step = fields.size() - 1; step > 0; --step) {
      of_turn = of_turn + (at::conj(fields[step - 1]) * gradient).sum(1);
      of_drive = of_drive + gradient;
      gradient = gradient * at::conj(turn);
    }
    outputs_ = {{"grad_turn", of_turn}, {"grad_drive", planes_of(of_drive)}};
  }

  NamedTensors inputs_, outputs_;
  at::Tensor field_, age_;
  std::int64_t steps_;
  int sign_;
  bool backward_;
};

// The optimized backward: one element after the other, its field in every step kept on the way.
class LoopRotateBackward : public Runnable {
 public:
  LoopRotateBackward(const NamedTensors& inputs, const Setting& setting)
      : inputs_(inputs),
        steps_(setting.size("steps")),
        of_turn_(at::zeros_like(inputs["turn"].contiguous())),
        of_drive_(at::zeros_like(inputs["drive"].contiguous())) {
    LoopRotateBackward::reset();
  }
  void reset() override { field_ = inputs_["field"].clone(at::MemoryFormat::Contiguous); }
  void run() override {
    using Number = Rotate::Number;
    const auto numbers = [&](const at::Tensor& t) { return reinterpret_cast<const Number*>(t.const_data_ptr()); };
    const at::Tensor turn = inputs_["turn"].contiguous(), drive = inputs_["drive"].contiguous(),
                     of_field = inputs_["grad_field"].contiguous(), of_planes = inputs_["grad_planes"].contiguous();
    auto* const field = reinterpret_cast<Number*>(field_.mutable_data_ptr());
    const float *d = drive.const_data_ptr<float>(), *p = of_planes.const_data_ptr<float>();
    const std::int64_t width = field_.size(1), count = field_.numel();
    auto* const to_turn = reinterpret_cast<Number*>(of_turn_.mutable_data_ptr());
    float* const to_drive = of_drive_.mutable_data_ptr<float>();
    std::vector<Number> before(static_cast<std::size_t>(steps_));
    for (std::int64_t item = 0; item < field_.size(0); ++item) {
      const Number t = numbers(turn)[item];
      std::complex<double> sum = 0;
      for (std::int64_t i = item * width; i < (item + 1) * width; ++i) {
        Number z = field[i], all = 0;
        for (auto& kept : before) kept = z, z = z * t + Number(d[i], d[count + i]);
        field[i] = z;  // the next run goes on from there
        Number gradient = numbers(of_field)[i] - Number(0, 1) * Number(p[i], p[count + i]);
        for (auto kept = before.rbegin(); kept != before.rend(); ++kept) {
          sum += std::conj(*kept) * gradient;
          all += gradient;
          gradient *= std::conj(t);
        }
        to_drive[i] = all.real();
        to_drive[count + i] = all.imag();
      }
      to_turn[item] = Number(sum);
    }
  }
  NamedTensors outputs() override { return {{"grad_turn", of_turn_}, {"grad_drive", of_drive_}}; }

 private:
  NamedTensors inputs_;
  std::int64_t steps_;
  at::Tensor field_, of_turn_, of_drive_;
};

Signature signature() {
  const Tolerance step{Tolerance::Kind::kBound, {2e-5, 2e-5}, {2e-5, 2e-5}, "step"};
  const Tolerance measured{Tolerance::Kind::kMeasured, {}, {}, "measured"};
  return {
      .sizes = {{"items", 0}, {"width", 1}, {"steps", 1}, {"workers", 1}},
      .options = {switch_option("wrong_sign", false, "the drive is subtracted: a documented mistake"),
                  switch_option("blocked", false, "columns in two blocks")},
      .inputs = {state("field", "items, width", from_case(1)).batch(0).of(Element::kComplex),
                 state("age", "1", not_drawn()).of(Element::kInt64),
                 data("turn", "items", from_case(2, 0.7)).of(Element::kComplex),
                 data("drive", "2, items, width", from_case(3)).batch(1).of(Element::kPlanar),
                 data("limit", "items", from_case(4)).shifted(4).of(Element::kDouble).without_gradient()},
      .outputs = {output("field", "items, width", step).of(Element::kComplex).with_gradient(5),
                  output("planes", "2, items, width", step).batch(1).of(Element::kPlanar).with_gradient(6),
                  output("energy", "items", step).of(Element::kDouble),
                  exact_output("age", "1", Element::kInt64).batch(std::nullopt),
                  output("seconds", "1", measured).batch(std::nullopt).of(Element::kDouble)},
  };
}

}  // namespace

Rotate::Rotate(const NamedTensors& inputs, const Setting& setting, bool checks)
    : given_field_(inputs["field"].clone(at::MemoryFormat::Contiguous)),
      given_age_(inputs["age"].clone()),
      turn_(inputs["turn"]),
      drive_(inputs["drive"]),
      limit_(inputs["limit"]),
      field_(given_field_.clone()),
      age_(given_age_.clone()),
      planes_(at::zeros(drive_.sizes())),
      energy_(at::zeros(limit_.sizes(), at::kDouble)),
      seconds_(at::zeros({1}, at::kDouble)),
      items_(setting.size("items")),
      width_(setting.size("width")),
      steps_(setting.size("steps")),
      blocked_(setting.on("blocked")) {
  if (checks) check_age(inputs);
}

void Rotate::reset() {
  std::copy_n(given_field_.const_data_ptr<c10::complex<float>>(), items_ * width_,
              field_.mutable_data_ptr<c10::complex<float>>());
  *age_.mutable_data_ptr<std::int64_t>() = *given_age_.const_data_ptr<std::int64_t>();
}

void Rotate::advance(Number& field, Number turn, Number drive, std::int64_t) {
  for (std::int64_t step = 0; step < steps_; ++step) field = field * turn + drive;
}

void Rotate::run() {
  const auto start = std::chrono::steady_clock::now();
  const at::Tensor turns = turn_.contiguous(), drives = drive_.contiguous(), limits = limit_.contiguous();
  const auto* const turn = reinterpret_cast<const Number*>(turns.const_data_ptr());
  const float *const real = drives.const_data_ptr<float>(), *const imaginary = real + items_ * width_;
  auto* const field = reinterpret_cast<Number*>(field_.mutable_data_ptr());
  float* const planes = planes_.mutable_data_ptr<float>();
  const std::int64_t block = blocked_ ? (width_ + 1) / 2 : width_;
  for (std::int64_t first = 0; first < width_; first += block)
    for (std::int64_t item = 0; item < items_; ++item)
      for (std::int64_t column = first; column < std::min(first + block, width_); ++column) {
        const std::int64_t i = item * width_ + column;
        advance(field[i], turn[item], {real[i], imaginary[i]}, i);
        planes[i] = -field[i].imag();
        planes[items_ * width_ + i] = field[i].real();
      }
  for (std::int64_t item = 0; item < items_; ++item) {
    double sum = 0;
    for (std::int64_t i = item * width_; i < (item + 1) * width_; ++i) sum += std::norm(std::complex<double>(field[i]));
    energy_.mutable_data_ptr<double>()[item] = sum * limits.const_data_ptr<double>()[item];
  }
  *age_.mutable_data_ptr<std::int64_t>() += steps_;
  *seconds_.mutable_data_ptr<double>() =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

NamedTensors Rotate::outputs() {
  return {{"field", field_}, {"planes", planes_}, {"energy", energy_}, {"age", age_}, {"seconds", seconds_}};
}

std::unique_ptr<Runnable> rotate_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<StepByStep>(inputs, setting);
}
std::unique_ptr<Runnable> rotate_backward(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<LoopRotateBackward>(inputs, setting);
}

Component rotate_component(Factory optimized) {
  Component component;
  component.baseline = rotate_baseline;
  component.optimized = optimized;
  ComponentSpec& spec = component.spec;
  spec.pipeline = "selftest";
  spec.name = "rotate";
  spec.signature = signature();
  spec.batch_size = "items";
  ProofCounter adds{"aten::add", "two a step, as many steps as the field has become older", nullptr, nullptr};
  adds.of_result = [](Variant variant, const NamedTensors& outputs, const Setting&) {
    return variant == Variant::kBaseline ? 2 * outputs["age"].item<std::int64_t>() : 0;
  };
  spec.proof = {adds};
  spec.relations = {{"blocked or whole",
                     [](Setting setting) {
                       setting.input_case.options["blocked"] = 1 - setting.option("blocked");
                       return setting;
                     }},
                    {"one worker or two", [](Setting setting) {
                       setting.input_case.sizes["workers"] = 3 - setting.size("workers");
                       return setting;
                     }}};
  spec.refusals = {
      {"negative age", [](NamedTensors& inputs, Setting&) { inputs["age"].fill_(-1); }, ErrorKind::kOutOfRange, "age"}};
  return component;
}

Setting rotate_setting(Component& component, Options options, Pass pass) {
  Setting setting;
  setting.input_case.name = "selftest";
  setting.input_case.sizes = {{"items", 5}, {"width", 7}, {"steps", 3}, {"workers", 1}};
  setting.input_case.options = std::move(options);
  setting.input_case.pass = pass;
  component.spec.cases = {setting.input_case};
  return setting;
}

}  // namespace twinbench::selftest
