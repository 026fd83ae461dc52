#include "nn/heads/softmax_heads.h"

#include "nn/base/upload.h"
#include "nn/layers/layers.h"
#include "nn/ops/softmax_rows.h"

namespace nn {
namespace {

/// Returns scores (R, V) in the accumulation type.
torch::Tensor scores_of(const torch::Tensor& f, const torch::Tensor& weight,
    const torch::Tensor& bias, double cap = 0) {
  auto scores = f.to(weight.scalar_type()).mm(weight.t()).to(accumulation_type(weight));
  if (cap > 0) return scores.div_(cap).tanh_().mul_(cap);
  return bias.defined() ? scores.add_(bias) : scores;
}

class PlainBlock : public HeadBlock {
 public:
  PlainBlock(const torch::Tensor& weight, const torch::Tensor& bias, const torch::Tensor& f,
      const torch::Tensor& targets, bool gradient)
      : weight_(weight) {
    softmax_ = row_softmax_(scores_of(f, weight, bias), targets);
    log_prob = softmax_.log_prob;
    log_z = softmax_.log_z;
    if (!gradient) {
      softmax_.exp.reset();
      return;
    }
    f_ = f;
    targets_ = targets;
  }

  torch::Tensor backward(const torch::Tensor& d_log_prob, const torch::Tensor& d_log_z,
      std::vector<torch::Tensor>& gradients) override {
    const torch::NoGradGuard no_grad;
    const auto d_f =
        row_softmax_backward(softmax_, f_, weight_, 0, targets_, d_log_prob, d_log_z, gradients[0]);
    if (gradients.size() > 1)
      row_bias_backward(softmax_, 0, targets_, d_log_prob, d_log_z, gradients[1]);
    softmax_.exp.reset();
    return d_f.to(f_.scalar_type());
  }

 private:
  torch::Tensor weight_, f_, targets_;
  RowSoftmax softmax_;
};

class CappedBlock : public HeadBlock {
 public:
  CappedBlock(const torch::Tensor& weight, double cap, const torch::Tensor& f,
      const torch::Tensor& targets, bool gradient)
      : weight_(weight), cap_(cap) {
    auto scores = scores_of(f, weight, {}, cap);
    log_z = scores.logsumexp(1);
    log_prob = scores.gather(1, targets.unsqueeze(1)).squeeze(1) - log_z;
    if (!gradient) return;
    scores_ = std::move(scores), f_ = f, targets_ = targets.unsqueeze(1);
  }

  torch::Tensor backward(const torch::Tensor& d_log_prob, const torch::Tensor& d_log_z,
      std::vector<torch::Tensor>& gradients) override {
    const torch::NoGradGuard no_grad;
    // d/d score_j = d_log_prob [j = target] + (d_log_z - d_log_prob) p_j, followed by the gradient
    // of the cap.
    auto d = (scores_ - log_z.unsqueeze(1)).exp_().mul_((d_log_z - d_log_prob).unsqueeze(1));
    d.scatter_add_(1, targets_, d_log_prob.unsqueeze(1).to(d.scalar_type()));
    d.mul_(1 - (scores_ / cap_).square_());
    scores_.reset();
    const auto narrow = d.to(weight_.scalar_type());
    gradients[0].add_(narrow.t().mm(f_.to(weight_.scalar_type())));
    return narrow.mm(weight_).to(f_.scalar_type());
  }

 private:
  torch::Tensor weight_;
  double cap_;
  torch::Tensor scores_, f_, targets_;
};

/// The rows of a block with targets in one band.
struct Tail {
  std::int64_t band, begin;  // begin: the band's first token
  torch::Tensor rows;        // (n) int64: indices in the block
  torch::Tensor targets;     // (n): indices in the band
  torch::Tensor keep;        // (n, width): dropout factors; undefined: no dropout
  torch::Tensor hidden;      // (n, width): after dropout
  RowSoftmax softmax;
};

/// Gradients in the order of AdaptiveHead::weights().
struct Parts {
  const std::vector<torch::Tensor>& tables;
  const std::vector<torch::Tensor>& projections;
  const torch::Tensor& slots;
  const torch::Tensor& bias;  // per token; undefined: none
  const torch::Tensor& slot_bias;
};

/// Returns for each band the ordered indices (n) int64 on `device` of the rows with a target in the
/// band. `targets` is (R) int64 on the CPU. One copy transfers all indices.
std::vector<torch::Tensor> rows_of_bands(
    const Bands& bands, const torch::Tensor& targets, torch::Device device) {
  const auto whole = targets.contiguous();
  const auto* const ids = whole.const_data_ptr<std::int64_t>();
  std::vector<std::vector<std::int64_t>> rows(static_cast<std::size_t>(bands.count()));
  for (std::int64_t r = 0; r < whole.numel(); ++r) {
    const auto band = std::upper_bound(bands.cutoffs.begin(), bands.cutoffs.end(), ids[r]);
    rows[static_cast<std::size_t>(band - bands.cutoffs.begin())].push_back(r);
  }
  std::vector<std::int64_t> sizes, all;
  for (const auto& of_band : rows) {
    sizes.push_back(std::ssize(of_band));
    all.insert(all.end(), of_band.begin(), of_band.end());
  }
  return upload(torch::tensor(all, torch::kInt64), device).split_with_sizes(sizes);
}

class AdaptiveBlock : public HeadBlock {
 public:
  AdaptiveBlock(const Parts& parts, const Bands& bands, double dropout, const torch::Tensor& f,
      const Targets& targets, bool gradient)
      : tables_(parts.tables), projections_(parts.projections), slots_(parts.slots),
        bias_(parts.bias), slot_bias_(parts.slot_bias), f_(f) {
    first_f_ = f_.to(tables_[0].scalar_type());
    if (bands.narrow()) first_f_ = first_f_.mm(projections_.back());
    first_level(bands, targets.there);
    const auto rows = rows_of_bands(bands, targets.on_host(), f.device());
    for (std::int64_t band = 1; band < bands.count(); ++band)
      second_level(bands, band, rows[static_cast<std::size_t>(band)], targets.there, dropout);
    if (gradient) return;
    first_.exp.reset();
    tails_.clear();
  }

  torch::Tensor backward(const torch::Tensor& d_log_prob, const torch::Tensor& d_log_z,
      std::vector<torch::Tensor>& gradients) override {
    const torch::NoGradGuard no_grad;
    const auto bands = tables_.size(), common = static_cast<std::size_t>(tables_[0].size(0));
    const bool narrow = projections_.size() == bands;
    const auto& seen = narrow ? first_f_ : f_;
    auto d_f = row_softmax_backward(
        first_, seen, tables_[0], 0, choice_, d_log_prob, d_log_z, gradients[0]);
    d_f.add_(row_softmax_backward(first_, seen, slots_, static_cast<std::int64_t>(common), choice_,
        d_log_prob, d_log_z, gradients[bands]));
    if (narrow)
      d_f = through(projections_.back(), f_, d_f, gradients[bands + projections_.size()])
                .to(d_f.scalar_type());
    const auto of_words = bands + projections_.size() + 1;  // if there are biases
    if (bias_.defined()) {
      auto first = gradients[of_words].narrow(0, 0, tables_[0].size(0));
      row_bias_backward(first_, 0, choice_, d_log_prob, d_log_z, first);
      row_bias_backward(first_, tables_[0].size(0), choice_, d_log_prob, d_log_z, gradients.back());
    }
    for (auto& tail : tails_) {
      const auto d_tail = d_log_prob.index_select(0, tail.rows), none = torch::zeros_like(d_tail);
      if (bias_.defined()) {
        auto of_tail = gradients[of_words].narrow(0, tail.begin, tables_[tail.band].size(0));
        row_bias_backward(tail.softmax, 0, tail.targets, d_tail, none, of_tail);
      }
      auto d_hidden = row_softmax_backward(tail.softmax, tail.hidden, tables_[tail.band], 0,
          tail.targets, d_tail, none, gradients[tail.band]);
      if (tail.keep.defined()) d_hidden.mul_(tail.keep);
      const auto d_rows = through(projections_[tail.band - 1], f_.index_select(0, tail.rows),
          d_hidden, gradients[bands + static_cast<std::size_t>(tail.band)]);
      d_f.index_add_(0, tail.rows, d_rows.to(d_f.scalar_type()));
    }
    first_.exp.reset();
    tails_.clear();
    return d_f.to(f_.scalar_type());
  }

 private:
  /// Backward of f P (R, width). Adds to d_projection and returns the gradient of f.
  static torch::Tensor through(const torch::Tensor& projection, const torch::Tensor& f,
      const torch::Tensor& d, torch::Tensor& d_projection) {
    const auto narrow = d.to(projection.scalar_type());
    d_projection.add_(f.to(projection.scalar_type()).t().mm(narrow));
    return narrow.mm(projection.t());
  }

  void first_level(const Bands& bands, const torch::Tensor& targets) {
    const auto& words = tables_[0];
    const auto common = words.size(0), width = common + slots_.size(0);
    choice_ = targets.clone();
    for (std::int64_t band = 1; band < bands.count(); ++band)
      choice_.masked_fill_((targets >= bands.begin(band)).logical_and_(targets < bands.end(band)),
          common + band - 1);
    auto scores = torch::empty({f_.size(0), width}, words.options().requires_grad(false));
    auto left = scores.narrow(1, 0, common), right = scores.narrow(1, common, width - common);
    at::mm_out(left, first_f_, words.t());
    at::mm_out(right, first_f_, slots_.t());
    scores = scores.to(accumulation_type(words));
    if (bias_.defined()) scores.add_(torch::cat({bias_.narrow(0, 0, common), slot_bias_}));
    first_ = row_softmax_(std::move(scores), choice_);
    log_prob = first_.log_prob;
    log_z = first_.log_z;
  }

  void second_level(const Bands& bands, std::int64_t band, const torch::Tensor& rows,
      const torch::Tensor& targets, double dropout) {
    if (rows.size(0) == 0) return;
    Tail tail;
    tail.band = band;
    tail.begin = bands.begin(band);
    tail.rows = rows;
    tail.targets = targets.index_select(0, tail.rows) - bands.begin(band);
    const auto& table = tables_[band];
    const auto type = table.scalar_type();
    tail.hidden = f_.index_select(0, tail.rows).to(type).mm(projections_[band - 1]);
    if (dropout > 0) {
      tail.keep = torch::empty_like(tail.hidden).bernoulli_(1 - dropout).div_(1 - dropout);
      tail.hidden.mul_(tail.keep);
    }
    auto scores = tail.hidden.mm(table.t()).to(accumulation_type(table));
    if (bias_.defined()) scores.add_(bias_.narrow(0, tail.begin, table.size(0)));
    tail.softmax = row_softmax_(std::move(scores), tail.targets);
    log_prob.index_add_(0, tail.rows, tail.softmax.log_prob);
    tails_.push_back(std::move(tail));
  }

  std::vector<torch::Tensor> tables_, projections_;
  torch::Tensor slots_, bias_, slot_bias_;
  torch::Tensor f_, first_f_;  // first_f_: input of the first level, f' in the header
  torch::Tensor choice_;       // (R): column of the target at the first level
  RowSoftmax first_;
  std::vector<Tail> tails_;
};

}  // namespace

PlainHead::PlainHead(std::int64_t vocabulary, std::int64_t d_model, bool bias, double cap)
    : weight_(register_parameter("weight", blank({vocabulary, d_model}))), cap_(cap) {
  add_bias(bias);
}

PlainHead::PlainHead(const std::shared_ptr<Embedding>& tied, bool bias, double cap)
    : weight_(tied->tables.at(0)), cap_(cap) {
  add_bias(bias);
}

void PlainHead::add_bias(bool bias) {
  if (bias) bias_ = register_parameter("bias", blank({weight_.size(0)}));
}

std::vector<torch::Tensor> PlainHead::weights() {
  if (!bias_.defined()) return {weight_};
  return {weight_, bias_};
}

std::unique_ptr<HeadBlock> PlainHead::block(
    const torch::Tensor& f, const Targets& targets, bool gradient) {
  const torch::NoGradGuard no_grad;
  if (cap_ > 0) return std::make_unique<CappedBlock>(weight_, cap_, f, targets.there, gradient);
  return std::make_unique<PlainBlock>(weight_, bias_, f, targets.there, gradient);
}

torch::Tensor PlainHead::log_probs(const torch::Tensor& f, torch::Tensor* log_z) {
  const torch::NoGradGuard no_grad;
  const auto scores = scores_of(f, weight_, bias_, cap_);
  const auto normaliser = scores.logsumexp(1);
  if (log_z != nullptr) *log_z = normaliser;
  return scores - normaliser.unsqueeze(1);
}

std::int64_t PlainHead::bytes_per_row() const {
  const auto bytes = static_cast<std::int64_t>(elementSize(accumulation_type(weight_)));
  return weight_.size(0) * bytes * (cap_ > 0 ? 3 : 1);
}

AdaptiveHead::AdaptiveHead(Bands bands, const std::shared_ptr<Embedding>& tied,
    bool tied_projections, double adaptive_softmax_dropout, bool bias)
    : bands_(std::move(bands)), tail_dropout_(adaptive_softmax_dropout) {
  for (std::int64_t i = 0; i < bands_.count(); ++i) {
    const auto number = std::to_string(i);
    tables_.push_back(tied ? tied->tables.at(i)
                           : register_parameter("table_" + number,
                                 blank({bands_.end(i) - bands_.begin(i), bands_.width(i)})));
    if (i > 0) add_projection(i, tied && tied_projections ? tied.get() : nullptr);
  }
  if (bands_.narrow()) add_projection(0, tied && tied_projections ? tied.get() : nullptr);
  slots_ = register_parameter("slots", blank({bands_.count() - 1, bands_.width(0)}));
  if (!bias) return;
  bias_ = register_parameter("bias", blank({bands_.vocabulary}));
  slot_bias_ = register_parameter("slot_bias", blank({bands_.count() - 1}));
}

void AdaptiveHead::add_projection(std::int64_t band, const Embedding* tied) {
  projections_.push_back(tied != nullptr ? tied->projections.at(band)
                                         : register_parameter("projection_" + std::to_string(band),
                                               blank({bands_.d_model, bands_.width(band)})));
}

std::vector<torch::Tensor> AdaptiveHead::weights() {
  auto all = tables_;
  all.push_back(slots_);
  all.insert(all.end(), projections_.begin(), projections_.end());
  if (bias_.defined()) all.insert(all.end(), {bias_, slot_bias_});
  return all;
}

std::unique_ptr<HeadBlock> AdaptiveHead::block(
    const torch::Tensor& f, const Targets& targets, bool gradient) {
  const torch::NoGradGuard no_grad;
  const Parts parts{tables_, projections_, slots_, bias_, slot_bias_};
  return std::make_unique<AdaptiveBlock>(
      parts, bands_, is_training() ? tail_dropout_ : 0.0, f, targets, gradient);
}

torch::Tensor AdaptiveHead::log_probs(const torch::Tensor& f, torch::Tensor* log_z) {
  const torch::NoGradGuard no_grad;
  const auto narrow = f.to(tables_[0].scalar_type());
  const auto type = accumulation_type(tables_[0]);
  const auto seen = bands_.narrow() ? narrow.mm(projections_.back()) : narrow;
  auto first = torch::cat({seen.mm(tables_[0].t()), seen.mm(slots_.t())}, 1).to(type);
  const auto common = bands_.end(0);
  if (bias_.defined()) first.add_(torch::cat({bias_.narrow(0, 0, common), slot_bias_}));
  const auto normaliser = first.logsumexp(1, /*keepdim=*/true);
  if (log_z != nullptr) *log_z = normaliser.squeeze(1);
  auto out = torch::empty({f.size(0), bands_.vocabulary}, first.options());
  out.narrow(1, 0, common).copy_(first.narrow(1, 0, common) - normaliser);
  for (std::int64_t band = 1; band < bands_.count(); ++band) {
    const auto slot = first.narrow(1, common + band - 1, 1) - normaliser;
    const auto begin = bands_.begin(band), words = bands_.end(band) - begin;
    auto scores = narrow.mm(projections_[band - 1]).mm(tables_[band].t()).to(type);
    if (bias_.defined()) scores.add_(bias_.narrow(0, begin, words));
    out.narrow(1, begin, words).copy_(scores.log_softmax(1) + slot);
  }
  return out;
}

std::int64_t AdaptiveHead::bytes_per_row() const {
  std::int64_t largest = 0;
  for (std::int64_t i = 1; i < bands_.count(); ++i)
    largest = std::max(largest, bands_.end(i) - bands_.begin(i));
  const auto columns = tables_[0].size(0) + slots_.size(0) + largest / 4;
  return columns * static_cast<std::int64_t>(elementSize(accumulation_type(tables_[0])));
}

}  // namespace nn
