// Recomputed blocks: values, gradients and State are bit-identical to those without recomputation,
// also if the blocks borrow their weights.

#include "nn/ops/recomputed.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nn/base/recomputing.h"
#include "properties.h"

namespace {

using properties::Ids;
using torch::Tensor;

// Has the weights of blocks not a number while they are not lent, and adds up their gradients.
class Hiding : public nn::WeightLender {
 public:
  explicit Hiding(const std::vector<std::vector<Tensor>>& blocks) {
    for (const auto& weights : blocks)
      for (const auto& weight : weights)
        kept_[weight.unsafeGetTensorImpl()] = weight.detach().clone();
    for (const auto& weights : blocks) take_back(weights);
  }
  void lend(const std::vector<Tensor>& weights) override {
    for (const auto& weight : weights)
      weight.variable_data().copy_(kept_.at(weight.unsafeGetTensorImpl()));
    ++lent;
  }
  void take_back(const std::vector<Tensor>& weights) override {
    for (const auto& weight : weights) weight.variable_data().fill_(std::nan(""));
    ++taken_back;
  }
  void offer(const std::vector<Tensor>& weights, std::vector<Tensor>& gradients) override {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      auto& sum = sums_[weights[i].unsafeGetTensorImpl()];
      if (gradients[i].defined()) sum = sum.defined() ? sum + gradients[i] : gradients[i];
      gradients[i].reset();
    }
  }
  // The gradient that was offered, or the weight's own.
  Tensor gradient(const Tensor& weight) const {
    const auto found = sums_.find(weight.unsafeGetTensorImpl());
    if (found == sums_.end()) return weight.grad();
    DOCTEST_CHECK(!weight.grad().defined());
    return found->second;
  }
  int lent = 0, taken_back = 0;

 private:
  std::map<const void*, Tensor> kept_, sums_;
};

// Returns f, g, the gradients of all weights, the State and torch's next random number after two
// calls. The second call continues the first if rows are carried.
std::vector<Tensor> trained_twice(const nn::ModelOptions& options, bool carries, bool source,
    bool recompute, bool lends = false) {
  torch::manual_seed(3);
  nn::Model model(options, properties::kVocabulary);
  model.train();
  std::shared_ptr<Hiding> lender;
  if (auto* const blocks = dynamic_cast<nn::LendingBlocks*>(model.architecture.get());
      blocks != nullptr && lends) {
    lender = std::make_shared<Hiding>(blocks->block_weights());
    blocks->lend_weights(lender);
  }
  dynamic_cast<nn::RecomputingBlocks&>(*model.architecture).recompute_blocks(recompute);
  constexpr std::int64_t kSteps = 20;
  nn::State state;
  std::vector<Tensor> all;
  for (std::uint64_t call = 0; call < 2; ++call) {
    auto batch = properties::batch_of(
        {properties::random_ids(kSteps, 5 + call), properties::random_ids(kSteps, 8 + call),
            properties::random_ids(kSteps, 11 + call)},
        call == 0);
    if (source) {
      batch.source = torch::randint(0, properties::kVocabulary, {3, 7}, torch::kInt64);
      batch.source[1].slice(0, 4) = properties::kPad;
    }
    const auto hidden = model.architecture->forward(batch, carries ? &state : nullptr);
    (hidden.output.square().sum() + hidden.key.sin().sum()).backward();
    state.detach();
    all.insert(all.end(), {hidden.output.detach(), hidden.key.detach()});
  }
  for (const auto& [name, weight] : model.named_weights()) {
    DOCTEST_CAPTURE(name);
    const auto gradient = lender ? lender->gradient(weight) : weight.grad();
    DOCTEST_REQUIRE(gradient.defined());
    all.push_back(gradient.is_sparse() ? gradient.to_dense() : gradient);
  }
  if (lender) {  // twice a call for all blocks but the last, and that once
    const auto layers = static_cast<int>(options.shape.layers);
    DOCTEST_CHECK(lender->lent == 2 * (2 * (layers - 1) + 1));
    DOCTEST_CHECK(lender->taken_back == layers + 2 * 2 * (layers - 1));
  }
  for (const auto& [name, tensor] : state.tensors) all.push_back(tensor);
  all.push_back(torch::rand({1}));
  return all;
}

void check_recomputed(
    const std::string& what, const nn::ModelOptions& options, bool carries = false) {
  DOCTEST_CAPTURE(what);
  DOCTEST_CAPTURE(carries);
  const bool source = options.arch == "encoder-decoder";
  const auto want = trained_twice(options, carries, source, false);
  for (const bool lends : {false, true}) {
    if (lends && source) continue;
    DOCTEST_CAPTURE(lends);
    const auto got = trained_twice(options, carries, source, !lends, lends);
    DOCTEST_REQUIRE(got.size() == want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      DOCTEST_CAPTURE(i);
      DOCTEST_CHECK(torch::equal(got[i], want[i]));
    }
  }
}

nn::ModelOptions dropping(const std::string& arch = "transformer") {
  auto options = properties::small_options(arch);
  options.shape.layers = 3;
  options.shape.dropout = 0.3, options.shape.attention_dropout = 0.2;
  options.shape.head_dropout = 0.1;
  options.transformer.context = 64;
  return options;
}

}  // namespace

DOCTEST_TEST_CASE("recomputed blocks: the same dropout, values and gradients, to the bit") {
  check_recomputed("fused", dropping());
  auto modules = dropping();
  modules.shape.activation_dropout = 0.2;
  check_recomputed("modules", modules);
  for (const std::string norm : {"post", "sublayer", "sandwich", "parallel", "parallel-one"}) {
    auto options = dropping();
    options.transformer.norm = norm;
    check_recomputed(norm, options);
  }
  auto turned = dropping();
  turned.transformer.positions = "rope", turned.transformer.kv_heads = 2;
  turned.transformer.attention_window = {4, 0};
  check_recomputed("rope", turned);
  check_recomputed("rope", turned, /*carries=*/true);
  auto biased = dropping();
  biased.transformer.positions = "alibi", biased.shape.memory_key = "output";
  check_recomputed("alibi", biased, /*carries=*/true);
  check_recomputed("encoder-decoder", dropping("encoder-decoder"));
}

DOCTEST_TEST_CASE("recomputed blocks: layers that look rows up keep their gradients") {
  auto options = dropping();
  options.memory_layer.kind = "product-key";
  options.memory_layer.layers = {1, 2, 3}, options.memory_layer.keys = 6;
  options.memory_layer.top_k = 3, options.memory_layer.heads = 2;
  for (const bool shared : {true, false}) {
    options.memory_layer.shared = shared;
    check_recomputed("product-key", options);
  }
  options.memory_layer.kind = "ngram", options.memory_layer.rows = 32;
  options.transformer.positions = "rope";
  check_recomputed("ngram", options, /*carries=*/true);
}

DOCTEST_TEST_CASE("recomputed: what is computed is computed again, and nothing of it was kept") {
  int calls = 0, again = 0;
  std::weak_ptr<int> kept;
  const auto x = torch::randn({4, 3}).requires_grad_(), w = torch::randn({3, 3}).requires_grad_();
  const auto compute = [&](const std::vector<Tensor>& inputs, bool second) {
    ++calls;
    again += second ? 1 : 0;
    DOCTEST_CHECK(torch::GradMode::is_enabled());
    auto y = inputs[0].matmul(w).tanh();
    const auto alive = std::make_shared<int>(0);
    if (!second) kept = alive;
    y.register_hook([alive](const Tensor&) {});  // lives as long as the graph
    return y.matmul(w);
  };
  const auto y = nn::recomputed({x}, {w}, compute);
  DOCTEST_CHECK(kept.expired());
  y.sum().backward();
  DOCTEST_CHECK(calls == 2);
  DOCTEST_CHECK(again == 1);
  const auto got_x = x.grad().clone(), got_w = w.grad().clone();
  x.mutable_grad().reset(), w.mutable_grad().reset();
  x.matmul(w).tanh().matmul(w).sum().backward();
  DOCTEST_CHECK(torch::equal(got_x, x.grad()));
  DOCTEST_CHECK(torch::equal(got_w, w.grad()));
}
