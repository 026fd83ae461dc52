#include "infer/decode/decode_weights.h"

#include <omp.h>

#include "infer/decode/block_kernels.h"
#include "nn/arch/transformer.h"
#include "nn/base/pages.h"
#include "nn/base/runtime.h"

namespace infer {
namespace {

// Checks the sizes of a required weight.
void expect_sizes(
    const torch::Tensor& weight, torch::IntArrayRef sizes, const std::string& name = "of a layer") {
  if (!weight.defined() || weight.sizes() != sizes)
    core::bug("weight {} has shape [{}], expected [{}]", name,
        fmt::join(weight.defined() ? weight.sizes() : torch::IntArrayRef{}, ", "),
        fmt::join(sizes, ", "));
}

}  // namespace

Affine::Range Affine::range(TeamShare share) const {
  const auto panels = matrix.panels();
  return {PackedMatrix::kPanel * share.begin(panels),
      std::min(matrix.out(), PackedMatrix::kPanel * share.end(panels))};
}

void Affine::multiply(const float* x, std::int64_t rows, std::int64_t ldx, TeamShare share,
    float* y, std::int64_t ldy) const {
  const auto panels = matrix.panels();
  if (halves) {
    matrix.multiply_halves(x, rows, ldx, share.begin(panels), share.end(panels), y, ldy);
  } else {
    matrix.multiply(x, rows, ldx, share.begin(panels), share.end(panels), y, ldy);
  }
  if (bias == nullptr) return;
  const auto [first, last] = range(share);
  for (std::int64_t i = 0; i < rows; ++i) add(bias + first, last - first, y + i * ldy + first);
}

PackedMatrix pack(
    const torch::Tensor& weight, std::int64_t first, std::int64_t rows, Precision precision) {
  if (precision == Precision::file) precision = Precision::float32;  // it is no matrix of a file
  const auto in = weight.size(1);
  if (weight.scalar_type() == torch::kBFloat16) {
    const auto* const halves =
        reinterpret_cast<const std::uint16_t*>(weight.const_data_ptr<at::BFloat16>());
    return {halves + first * in, rows, in, precision};
  }
  return {weight.const_data_ptr<float>() + first * in, rows, in, precision};
}

DecodeWeights::DecodeWeights(
    const torch::nn::Module& module, Precision precision, const PackedModel* packed, bool halves)
    : precision_(precision), packed_(packed), halves_(halves) {
  for (const auto& item : module.named_parameters())
    tensors_.emplace(item.key(), item.value().detach());
}

// Returns an undefined tensor if there is no such weight.
torch::Tensor DecodeWeights::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? torch::Tensor() : found->second;
}

torch::Tensor DecodeWeights::tensor(const std::string& name, torch::IntArrayRef sizes) const {
  const auto weight = find(name);
  expect_sizes(weight, sizes, name);
  return weight;
}

Affine DecodeWeights::affine(const WeightAndBias& map, std::int64_t out, std::int64_t in,
    std::int64_t first, std::int64_t rows) {
  expect_sizes(map.weight, {out, in});
  if (rows < 0) rows = out;
  const PackedMatrix* const taken = packed_ == nullptr ? nullptr : packed_->find(map.weight);
  const float* const bias = bias_of(map, out);
  return {taken != nullptr ? taken->rows(first, rows) : pack(map.weight, first, rows, precision_),
      bias == nullptr ? nullptr : bias + first, halves_};
}

LayerNormed DecodeWeights::norm(
    const WeightAndBias& factors, std::int64_t width, double epsilon, bool rms) {
  expect_sizes(factors.weight, {width});
  return {kept(factors.weight), bias_of(factors, width), width, static_cast<float>(epsilon), rms};
}

const float* DecodeWeights::bias_of(const WeightAndBias& of, std::int64_t size) {
  if (!of.bias.defined()) return nullptr;
  expect_sizes(of.bias, {size});
  return kept(of.bias);
}

PackedMatrix DecodeWeights::packed(const torch::Tensor& matrix) {
  const auto& kept = kept_.emplace_back(matrix.detach().to(torch::kFloat32).contiguous());
  return pack(kept, 0, kept.size(0), precision_);
}

const float* DecodeWeights::kept(const torch::Tensor& values) {
  return kept_.emplace_back(values.detach().to(torch::kFloat32).contiguous())
      .const_data_ptr<float>();
}

namespace {

// A block from the log-probabilities of whole rows.
class WholeRows : public nn::HeadBlock {
 public:
  WholeRows(nn::Head& head, const torch::Tensor& f, const nn::Targets& targets) {
    constexpr std::int64_t kRows = 256;  // at a time: each has a number for every word
    std::vector<torch::Tensor> chosen, normalisers;
    for (std::int64_t first = 0; first == 0 || first < f.size(0); first += kRows) {
      const auto tokens = targets.there.slice(0, first, first + kRows).unsqueeze(1);
      const auto rows =
          head.log_probs(f.slice(0, first, first + kRows), &normalisers.emplace_back());
      chosen.push_back(rows.gather(1, tokens).squeeze(1));
    }
    log_prob = torch::cat(chosen), log_z = torch::cat(normalisers);
  }
  torch::Tensor backward(
      const torch::Tensor&, const torch::Tensor&, std::vector<torch::Tensor>&) override {
    core::bug("a head without its weights has no gradient");
  }
};

/// Computes the log-probabilities of `head` (float32 or bfloat16, on the CPU), which must outlive
/// it, with packed weights. block() is the head's own; without its numbers it has no backward().
class PackedHead : public nn::Head {
 public:
  /// `cap`: see nn::PlainHead; 0: none. `packed`: see decoding_head().
  PackedHead(
      std::shared_ptr<nn::Head> head, double cap, Precision precision, const PackedModel* packed)
      : head_(std::move(head)), cap_(static_cast<float>(cap)) {
    const auto weight = head_->weights().at(0);
    const PackedMatrix* const found = packed == nullptr ? nullptr : packed->find(weight);
    taken_ = found != nullptr;
    matrix_ = taken_ ? *found : pack(weight, 0, weight.size(0), precision);
  }

  std::int64_t vocabulary() const override { return head_->vocabulary(); }
  std::vector<torch::Tensor> weights() override { return head_->weights(); }
  std::unique_ptr<nn::HeadBlock> block(
      const torch::Tensor& f, const nn::Targets& targets, bool gradient) override {
    if (!taken_) return head_->block(f, targets, gradient);
    return std::make_unique<WholeRows>(*this, f, targets);
  }
  torch::Tensor log_probs(const torch::Tensor& f, torch::Tensor* log_z) override {
    const torch::NoGradGuard no_gradient;
    const auto rows = f.size(0), stride = matrix_.padded_in(), vocabulary = matrix_.out();
    const auto x = torch::constant_pad_nd(f, {0, stride - f.size(1)}).contiguous();
    const auto out = torch::empty({rows, vocabulary});
    const auto normaliser = torch::empty({rows});
    const float* const from = x.const_data_ptr<float>();
    float* const to = out.data_ptr<float>();
    float* const z = normaliser.data_ptr<float>();
#pragma omp parallel num_threads(at::get_num_threads())
    {
      const std::int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
      const auto panels = matrix_.panels();
      matrix_.multiply(from, rows, stride, panels * thread / threads,
          panels * (thread + 1) / threads, to, vocabulary);
#pragma omp barrier
      for (std::int64_t r = thread; r < rows; r += threads) {
        if (cap_ > 0) soft_cap(to + r * vocabulary, vocabulary, cap_);
        z[r] = log_softmax(to + r * vocabulary, vocabulary);
      }
    }
    if (log_z != nullptr) *log_z = normaliser;
    return out;
  }
  std::int64_t bytes_per_row() const override { return head_->bytes_per_row(); }

 private:
  std::shared_ptr<nn::Head> head_;
  float cap_;
  bool taken_ = false;  // head_ has no numbers
  PackedMatrix matrix_;
};

// Returns whether the model's head is a plain softmax without biases.
bool packs_head(const nn::Model& model) {
  const auto& vocabulary = model.options.vocabulary;
  return vocabulary.cutoffs.empty() && !vocabulary.head_bias;
}

}  // namespace

bool has_transformer_loop(const nn::Model& model) {
  return dynamic_cast<const nn::DecoderStack*>(model.architecture.get()) != nullptr &&
         model.options.plain_layers();
}

bool PackedModel::takes(const nn::Model& model, const torch::Tensor& weight) {
  if (precision_ == Precision::float32 || weight.dim() != 2 || !weight.is_cpu() ||
      !has_transformer_loop(model) || nn::arch_facts(model.options.arch).reads_source)
    return false;
  const auto embedding = model.architecture->embedding();
  const bool of_embedding = weight.is_same(embedding->tables.at(0));
  const bool of_head = weight.is_same(model.head->weights().at(0));
  bool packs = (of_embedding || of_head) && (!of_embedding || embedding->projections.empty()) &&
               (!of_head || packs_head(model));
  if (!of_embedding && !of_head) {
    const auto& stack = dynamic_cast<const nn::DecoderStack&>(*model.architecture).stack();
    for (const auto& block : stack.blocks()) {
      const auto w = block->weights();
      for (const auto* of : {&w.qkv, &w.project, &w.expand, &w.reduce})
        packs = packs || weight.is_same(*of);
    }
  }
  if (packs)
    weights_[weight.unsafeGetTensorImpl()] = {weight,
        precision_ == Precision::file ? PackedMatrix()
                                      : PackedMatrix(weight.size(0), weight.size(1), precision_)};
  return packs;
}

void PackedModel::take(const torch::Tensor& weight, std::int64_t first, const torch::Tensor& rows) {
  weights_.at(weight.unsafeGetTensorImpl())
      .matrix.set_rows(first, rows.size(0), rows.const_data_ptr<float>());
}

bool PackedModel::take_blocks(
    const torch::Tensor& weight, const std::vector<model::GgufRows>& rows) {
  if (precision_ != Precision::file) return false;
  const auto in = weight.size(1);
  auto& matrix = weights_.at(weight.unsafeGetTensorImpl()).matrix;
  if (rows.empty()) {  // the file has it in another form
    matrix = PackedMatrix(weight.size(0), in, Precision::float32);
    return false;
  }
  const auto other = std::ranges::find_if(
      rows, [](const auto& of) { return block_format(of.type->id) == nullptr; });
  if (other == rows.end()) {
    matrix = PackedMatrix(std::make_shared<const BlockMatrix>(rows, in), in);
    return true;
  }
  const auto precision = other->type->elements == 1 ? Precision::float32 : Precision::int8;
  if (!std::exchange(noted_, true))
    nn::say(fmt::format("--dtype file: {} is unpacked to {}", other->type->name,
        precision == Precision::int8 ? "int8" : "float32"));
  matrix = PackedMatrix(weight.size(0), in, precision);
  return false;
}

void PackedModel::leaves(std::span<const torch::Tensor> weights) {
  nn::move_to_huge_pages(weights);
}

const PackedMatrix* PackedModel::find(const torch::Tensor& weight) const {
  const auto found = weights_.find(weight.unsafeGetTensorImpl());
  return found == weights_.end() ? nullptr : &found->second.matrix;
}

std::shared_ptr<nn::Head> decoding_head(
    const nn::Model& model, Precision precision, const PackedModel* packed) {
  if (!packs_head(model)) return model.head;
  const double cap = model.options.vocabulary.logit_softcap;
  return std::make_shared<PackedHead>(model.head, cap, precision, packed);
}

}  // namespace infer
