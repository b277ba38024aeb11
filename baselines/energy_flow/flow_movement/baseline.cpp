// Baseline of energy_flow.flow_movement: one flow at a time, each of its rules decided on the host after a read that
// waits for the device, its buffers made anew in every step.
#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "baselines/common/tape.h"

namespace twinbench::energy_flow::flow_movement {
namespace {

// Floats of a flow's carrier state, L * Hc of the unit configuration. The origin copies it along with position and
// energy; which values it holds decides nothing here, and the carrier has its own component.
constexpr std::int64_t kHidden = 64;

class Baseline final : public TapeBaseline {
 public:
  Baseline(const NamedTensors& inputs, const Setting& setting)
      : TapeBaseline(inputs, setting),
        flows_(setting.size("flows")),
        samples_(setting.size("samples")),
        kill_(setting.on("boundary")),
        drop_(setting.on("on_stop")),
        projection_age_(static_cast<std::int64_t>(setting.option("projection_age"))),
        sample_(on_host("sample")),
        stopped_(on_host("stopped")) {
    const auto options = inputs["raw"].options();
    live_ = at::ones({flows_}, options.dtype(at::kByte)).unbind(0);
    carried_ = at::zeros({kHidden}, options);
    hidden_.assign(static_cast<std::size_t>(flows_), carried_);
    new_age_ = at::zeros({flows_}, inputs["age"].options());
    make_leaves();
  }

  NamedTensors outputs() override {
    if (backward_) return TapeBaseline::outputs();
    const auto options = inputs_["raw"].options();
    const at::Tensor position = at::zeros({flows_, 3}, options), energy = at::zeros({flows_}, options);
    const at::Tensor status = at::full({flows_}, 4, options.dtype(at::kByte)), distance = at::zeros({flows_}, options);
    const at::Tensor age = at::zeros_like(new_age_), counts = at::zeros({samples_, 8}, age.options());
    for (std::int64_t f = 0; f < flows_; ++f) {
      const End& end = ends_[static_cast<std::size_t>(f)];
      counts[sample_.const_data_ptr<std::int32_t>()[f]][columns_.at(end.reason)].add_(1);
      if (!end.position.defined()) continue;
      position[f].copy_(end.position);
      energy[f].copy_(end.energy);
      age[f].copy_(end.age);
      status[f].fill_(end.reason == "active" ? 1 : end.position[2].lt(0).item<bool>() ? 2 : 3);
      end.at_stop.defined() ? distance[f].copy_(end.at_stop) : distance[f].fill_(end.distance);
    }
    return {{"new_position", position}, {"new_energy", energy}, {"new_age", age},
            {"status", status},         {"distance", distance}, {"counts", counts}};
  }

 private:
  // What is left of a flow. One that is gone has no buffers.
  struct End {
    std::string reason;
    at::Tensor position = {}, energy = {}, age = {};  // [3], [], []
    double distance = 0;
    at::Tensor at_stop = {};  // the distance of a flow that a stop projects: nobody reads it here
  };
  const std::map<std::string, std::int64_t> columns_ = {
      {"active", 0},         {"done_z0", 1},      {"done_zD", 2},     {"projected_age", 3},
      {"projected_stop", 4}, {"dropped_stop", 5}, {"died_bounds", 6}, {"died_nonfinite", 7}};

  void compute() override {
    ends_.clear();
    const auto raw = inputs_["raw"].unbind(0), position = inputs_["position"].unbind(0);
    const auto energy = inputs_["energy"].unbind(0), next_energy = inputs_["next_energy"].unbind(0);
    const auto age = inputs_["age"].unbind(0);
    const auto* const sample = sample_.const_data_ptr<std::int32_t>();
    for (std::int64_t i = 0; i < flows_; ++i) {
      const auto f = static_cast<std::size_t>(i);
      End end = stopped_.const_data_ptr<bool>()[sample[i]] ? stopped(position[f], energy[f], age[f])
                                                           : moved(i, raw[f], position[f], next_energy[f], age[f]);
      if (backward_ && end.position.defined()) {
        root(end.position, inputs_["grad_new_position"].select(0, i));
        root(end.energy, inputs_["grad_new_energy"].select(0, i));
      }
      ends_.push_back(std::move(end));
    }
  }

  // raw, position [3]; energy, age []. All eight reads come before the first rule, and the update before the verdict
  // that may throw it away.
  End moved(std::int64_t flow, const at::Tensor& raw, const at::Tensor& position, const at::Tensor& next_energy,
            const at::Tensor& age) {
    at::Tensor aged = new_age_.select(0, flow);
    at::add_out(aged, age, 1);
    const Readings readings = read(live_[static_cast<std::size_t>(flow)], raw.detach(), position.detach(), aged);
    const bool done = readings.at_z0 || readings.at_zd, due = !done && projection_age_ > 0 && readings.aged;
    const double plane = !done && !due ? 0 : (done ? readings.at_z0 : readings.nearer > 0) ? -1 : 1;
    End end = updated(flow, raw, next_energy, aged, plane);
    if (!readings.live)
      throw Error(ErrorKind::kInternal, "flow", std::to_string(flow), "the map holds live flows only");
    if (!std::isfinite(readings.length)) return {"died_nonfinite"};
    if (kill_ && (readings.x_out || readings.y_out)) return {"died_bounds"};
    if (done) end.reason = readings.at_z0 ? "done_z0" : "done_zD";
    if (!due) return end;
    end.reason = "projected_age";
    end.distance = std::abs(readings.nearer);
    return end;
  }

  struct Readings {
    bool live, at_z0, at_zd, x_out, y_out, aged;
    double length;  // of the move, by its longest axis: not finite exactly when raw is not
    double nearer;  // distance to the nearer plane, below zero where that is zD
  };
  // The sin: an operator, then a host that waits for its one value, eight times.
  Readings read(const at::Tensor& live, const at::Tensor& raw, const at::Tensor& position,
                const at::Tensor& aged) const {
    const at::Tensor z = raw.select(0, 2);
    Readings r{};
    r.live = live.eq(1).item<bool>();
    r.at_z0 = z.le(-1).item<bool>();
    r.at_zd = z.ge(1).item<bool>();
    r.x_out = raw.select(0, 0).abs().gt(1).item<bool>();
    r.y_out = raw.select(0, 1).abs().gt(1).item<bool>();
    r.aged = aged.ge(projection_age_).item<bool>();
    r.length = at::linalg_vector_norm(raw.sub(position), std::numeric_limits<double>::infinity()).item<double>();
    r.nearer = at::where(z.le(0), z.add(1), z.sub(1)).item<double>();
    return r;
  }

  // Three fresh buffers and three copies; the old ones are freed. plane: z of a flow that ends, 0 for one that goes on.
  End updated(std::int64_t flow, const at::Tensor& raw, const at::Tensor& next_energy, const at::Tensor& aged,
              double plane) {
    End end{"active", raw.clone(), next_energy.clone(), aged};
    hidden_[static_cast<std::size_t>(flow)] = carried_.clone();
    // Twice the clamped value less the value is one fold at the border that it passed, and the value itself inside.
    if (!kill_) end.position.narrow(0, 0, 2).clamp_(-1, 1).mul_(2).sub_(raw.narrow(0, 0, 2)).clamp_(-1, 1);
    end.position.select(0, 2).mul_(plane == 0 ? 1 : 0).add_(plane);
    return end;
  }

  // Of a flow whose sample has stopped. No read: the collection reads z for its own sake.
  End stopped(const at::Tensor& position, const at::Tensor& energy, const at::Tensor& age) const {
    if (drop_) return {"dropped_stop"};
    End end{"projected_stop", position.clone(), energy.clone(), age};
    const at::Tensor z = position.detach().select(0, 2);
    end.at_stop = at::rsub(z.abs(), 1);
    end.position.select(0, 2).copy_(at::where(z.le(0), -1, 1));
    return end;
  }

  const std::int64_t flows_, samples_;
  const bool kill_, drop_;
  const std::int64_t projection_age_;
  const at::Tensor &sample_, &stopped_;  // the host's map of flows knows both
  at::Tensor carried_, new_age_;
  std::vector<at::Tensor> live_, hidden_;
  std::vector<End> ends_;
};

}  // namespace

std::unique_ptr<Runnable> make_baseline(const NamedTensors& inputs, const Setting& setting) {
  return std::make_unique<Baseline>(inputs, setting);
}

}  // namespace twinbench::energy_flow::flow_movement
