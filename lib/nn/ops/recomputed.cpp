#include "nn/ops/recomputed.h"

#include <mutex>

namespace nn {
namespace {

// States of torch's generators, for the host and for a CUDA device.
struct Draws {
  Tensor host, device;

  static Draws now(torch::Device device) {
    return {of(torch::kCPU), device.is_cuda() ? of(device) : Tensor()};
  }
  void put_back(torch::Device device) const {
    put(torch::kCPU, host);
    if (this->device.defined()) put(device, this->device);
  }

 private:
  static Tensor of(torch::Device device) {
    auto generator = at::globalContext().defaultGenerator(device);
    const std::lock_guard<std::mutex> lock(generator.mutex());
    return generator.get_state();
  }
  static void put(torch::Device device, const Tensor& state) {
    auto generator = at::globalContext().defaultGenerator(device);
    const std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_state(state);
  }
};

// Restores the generators to `then` during its lifetime, and to their previous states afterwards.
class DrawsAgain {
 public:
  DrawsAgain(torch::Device device, const Draws& then)
      : device_(device), before_(Draws::now(device)) {
    then.put_back(device);
  }
  ~DrawsAgain() { before_.put_back(device_); }
  DrawsAgain(DrawsAgain&&) = delete;

 private:
  torch::Device device_;
  Draws before_;
};

// What the second forward pass needs besides the inputs.
struct Call : torch::CustomClassHolder {
  Compute compute;
  std::size_t inputs = 0;  // further tensors given to autograd are weights
  Draws draws;
  bool casts = false;
  torch::ScalarType type = torch::kFloat32;
  std::shared_ptr<WeightLender> lender;
  std::vector<Tensor> lent;
};

// Weights that are present while the object exists.
class Borrowed {
 public:
  explicit Borrowed(const Call& call) : call_(call) {
    if (call_.lender) call_.lender->lend(call_.lent);
  }
  ~Borrowed() {
    if (!call_.lender) return;
    if (call_.casts) at::autocast::clear_cache();  // copies of what is taken back
    call_.lender->take_back(call_.lent);
  }
  Borrowed(Borrowed&&) = delete;

 private:
  const Call& call_;
};

// Returns copies at which gradients end.
std::vector<Tensor> cut_off(at::TensorList tensors) {
  return core::mapped(tensors,
      [](const Tensor& tensor) { return tensor.detach().requires_grad_(tensor.requires_grad()); });
}

class Recomputed : public torch::autograd::Function<Recomputed> {
 public:
  static Tensor forward(
      AutogradContext* context, at::TensorList all, const c10::intrusive_ptr<Call>& call) {
    context->save_for_backward(all.vec());
    context->saved_data["call"] = c10::IValue::make_capsule(call);
    // Gradients are enabled although none are kept, so that both passes take the same code paths.
    const torch::AutoGradMode with_gradients(true);
    const Borrowed borrowed(*call);
    return call->compute(cut_off(all.slice(0, call->inputs)), /*again=*/false).detach();
  }

  static variable_list backward(AutogradContext* context, const variable_list& d_out) {
    const variable_list all = context->get_saved_variables();
    const auto call =
        c10::static_intrusive_pointer_cast<Call>(context->saved_data["call"].toCapsule());
    const auto device = all[0].device();
    const torch::AutoGradMode with_gradients(true);
    const auto leaves = cut_off(at::TensorList(all).slice(0, call->inputs));
    const Borrowed borrowed(*call);
    Tensor out;
    {
      const DrawsAgain draws(device, call->draws);
      const Autocast autocast(call->casts, device, call->type);
      out = call->compute(leaves, /*again=*/true);
    }
    variable_list of;
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].requires_grad()) of.push_back(i < call->inputs ? leaves[i] : all[i]);
    auto found = torch::autograd::grad({out}, of, d_out, /*retain_graph=*/false,
        /*create_graph=*/false, /*allow_unused=*/true);
    if (call->lender) {
      // Weights come last, and all have gradients.
      const auto first = found.end() - static_cast<std::ptrdiff_t>(all.size() - call->inputs);
      const auto last = first + static_cast<std::ptrdiff_t>(call->lent.size());
      variable_list offered(first, last);
      std::fill(first, last, Tensor());
      call->lender->offer(call->lent, offered);
      std::move(offered.begin(), offered.end(), first);
    }
    variable_list gradients;
    std::size_t next = 0;
    for (const auto& tensor : all)
      gradients.push_back(tensor.requires_grad() ? found[next++] : Tensor());
    gradients.emplace_back();  // for the argument `call`
    return gradients;
  }
};

}  // namespace

Tensor recomputed(const std::vector<Tensor>& inputs, const std::vector<Tensor>& weights,
    Compute compute, std::shared_ptr<WeightLender> lender, std::size_t lent) {
  auto call = c10::make_intrusive<Call>();
  const auto device = inputs[0].device();
  call->compute = std::move(compute);
  call->inputs = inputs.size();
  call->draws = Draws::now(device);
  call->casts = at::autocast::is_autocast_enabled(device.type());
  if (call->casts) call->type = at::autocast::get_autocast_dtype(device.type());
  call->lender = std::move(lender);
  if (call->lender)
    call->lent.assign(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(lent));
  std::vector<Tensor> all = inputs;
  all.insert(all.end(), weights.begin(), weights.end());
  return Recomputed::apply(at::TensorList(all), call);
}

}  // namespace nn
