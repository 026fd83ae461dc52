// The registry of LayeredEngine. To add an architecture, write a file layered_NAME.cpp with its
// parts and add a line to kLayered.

#include "infer/loops/layered_models.h"

#include <omp.h>

#include "nn/arch/mosaic.h"

namespace infer {

LayeredEngine::LayeredEngine(nn::Model& model, LayeredModel layered, Precision precision)
    : model_(model), layered_(std::move(layered)), d_(model.architecture->d_model()),
      head_(decoding_head(model, precision)), made_(layered_.steps.size()) {}

void LayeredEngine::open(std::int64_t rows) {
  lengths_.assign(static_cast<std::size_t>(rows), 0);
  marked_.reset();
  rows_ = rows;
  for (auto& step : layered_.steps) step.part->open(rows);
}

// Row i becomes a copy of row rows[i], including the rows that mark() saved.
void LayeredEngine::choose(const std::vector<std::int64_t>& rows) {
  lengths_ = chosen(lengths_, rows);
  for (auto& step : layered_.steps) step.part->select(rows);
}

void LayeredEngine::select(const std::vector<std::int64_t>& rows) {
  auto all = rows;
  if (marked_) {
    std::vector<RowInput> feeds;
    for (const auto row : rows) {
      all.push_back(rows_ + row);
      if (!marked_->empty()) feeds.push_back((*marked_)[static_cast<std::size_t>(row)]);
    }
    *marked_ = std::move(feeds);
  }
  choose(all);
  rows_ = std::ssize(rows);
}

void LayeredEngine::forget(std::int64_t keep) {
  for (auto& step : layered_.steps) step.part->forget(keep);
}

void LayeredEngine::mark() {
  choose(core::generated(2 * rows_, [&](auto i) { return i % rows_; }));
  marked_.emplace();
}

void LayeredEngine::roll_back(const std::vector<std::int64_t>& tokens) {
  auto feeds = std::move(*marked_);
  marked_.reset();
  const bool any = std::ranges::any_of(tokens, [](auto n) { return n > 0; });
  choose(core::generated(rows_, [&](auto i) { return any ? rows_ + i : i; }));
  if (!any) return;
  for (std::size_t i = 0; i < feeds.size(); ++i)
    feeds[i].tokens.resize(feeds[i].tokens.size() - static_cast<std::size_t>(tokens[i]));
  feed(feeds);
}

nn::Hidden LayeredEngine::feed(const std::vector<RowInput>& feeds) {
  if (marked_) *marked_ = feeds;
  std::vector<std::int64_t> ids;
  std::vector<Run> runs;  // one per row; positions count over all chunks
  for (std::size_t row = 0; row < feeds.size(); ++row) {
    if (feeds[row].fresh) {
      lengths_[row] = 0;
      for (auto& step : layered_.steps) step.part->clear(row);
    }
    const auto& tokens = feeds[row].tokens;
    if (tokens.empty()) continue;
    runs.push_back({row, std::ssize(ids), std::ssize(tokens), lengths_[row], lengths_[row]});
    lengths_[row] += std::ssize(tokens);
    ids.insert(ids.end(), tokens.begin(), tokens.end());
  }
  const auto n = std::ssize(ids);
  const nn::Hidden hidden{torch::empty({n, d_}), torch::empty({n, layered_.d_key})};
  for (std::int64_t begin = 0; begin < n; begin += kChunk) {
    const auto end = std::min(n, begin + kChunk);
    chunk_ = {end - begin, {}, at::get_num_threads()};
    for (const auto& run : runs) {
      const auto first = std::max(begin, run.begin), last = std::min(end, run.begin + run.count);
      if (first >= last) continue;
      const auto position = run.position + first - run.begin;
      chunk_.runs.push_back({run.row, first - begin, last - first, position, run.call});
    }
    prepare({ids.begin() + begin, ids.begin() + end});
    run(hidden.output.data_ptr<float>() + begin * d_,
        hidden.key.data_ptr<float>() + begin * layered_.d_key);
  }
  return hidden;
}

void LayeredEngine::prepare(const std::vector<std::int64_t>& ids) {
  const torch::NoGradGuard no_gradient;
  embedded_ = model_.architecture->embedding()->forward_wide(torch::tensor(ids)).contiguous();
  own_.resize(static_cast<std::size_t>(chunk_.threads));
  for (auto& own : own_) {
    own.stream.fit(chunk_.n, padded(d_));
    own.normed.fit(chunk_.n, padded(d_));
  }
  for (std::size_t i = 0; i < made_.size(); ++i) {
    made_[i].fit(chunk_.n, padded(layered_.steps[i].part->out()));
    layered_.steps[i].part->prepare(chunk_);
  }
}

void LayeredEngine::run(float* f, float* g) {
#pragma omp parallel num_threads(static_cast <int>(chunk_.threads))
  steps({omp_get_thread_num(), omp_get_num_threads()}, f, g);
}

// Runs the chunk through all steps. Each thread of a team calls it.
void LayeredEngine::steps(TeamShare share, float* f, float* g) {
  auto& own = own_[static_cast<std::size_t>(share.thread)];
  const auto n = chunk_.n, first = share.begin(n), last = share.end(n);
  for (std::int64_t i = 0; i < n; ++i)
    std::copy_n(embedded_.const_data_ptr<float>() + i * d_, d_, own.stream.row(i));
  Rows x = own.stream.rows();
  for (std::size_t s = 0; s < made_.size(); ++s) {
    auto& step = layered_.steps[s];
    Rows in = x;
    if (step.before) {
      for (std::int64_t i = 0; i < n; ++i) (*step.before)(x[i], own.normed.row(i));
      in = own.normed.rows();
    }
    auto& made = made_[s];
    step.part->run(chunk_, share, in, made.data(), made.stride());
#pragma omp barrier
    if (step.gives_keys) {
      const Rows keys = step.part->keys().data != nullptr ? step.part->keys() : in;
      for (auto i = first; i < last; ++i)
        std::copy_n(keys[i], layered_.d_key, g + i * layered_.d_key);
    }
    if (!layered_.residual) {
      x = made.rows();
      continue;
    }
    for (std::int64_t i = 0; i < n; ++i) {
      add(made.row(i), d_, own.stream.row(i));
      if (step.after) (*step.after)(own.stream.row(i), own.stream.row(i));
    }
  }
  for (auto i = first; i < last; ++i) {
    if (layered_.final_norm) {
      (*layered_.final_norm)(x[i], f + i * d_);
    } else {
      std::copy_n(x[i], d_, f + i * d_);
    }
    if (layered_.key_is_output) std::copy_n(f + i * d_, d_, g + i * d_);
    for (std::int64_t j = 0; j < d_; ++j) f[i * d_ + j] *= layered_.scale;
  }
}

LayeredModel started(const nn::Model& model, Precision precision) {
  LayeredModel out{DecodeWeights(*model.architecture, precision), model.architecture->d_key()};
  out.key_is_output = model.options.shape.memory_key == "output";
  return out;
}

std::unique_ptr<Part> feed_forward(
    LayeredModel& of, const std::string& layer, const nn::ModelOptions& options) {
  return std::make_unique<FeedForwardPart>(of.weights, layer + ".mlp", options.shape.d_model,
      options.shape.ffn_width(), nn::parse_activation(options.transformer.activation));
}

namespace {

bool always(const nn::Model&) { return true; }

bool one_state(const nn::Model& model) { return model.options.state_memory.kind == "none"; }

bool usual_heads(const nn::Model& model) {
  const auto& gla = model.options.gla;
  return one_state(model) && gla.key_heads + gla.value_heads + gla.d_key + gla.d_value == 0;
}

bool unbounded(const nn::Model& model) {
  return dynamic_cast<const nn::Mosaic&>(*model.architecture).bound().slots == 0;
}

struct Layered {
  const char* arch;
  LayeredModel (*make)(nn::Model& model, Precision precision);
  bool (*fits)(const nn::Model& model);
};

constexpr Layered kLayered[] = {
    {"gla", layered_gla, usual_heads},
    {"lstm", layered_lstm, one_state},
    {"mosaic", layered_mosaic, unbounded},
    {"mosaic2", layered_mosaic2, always},
    {"srupp", layered_srupp, always},
    {"transformer-xl", layered_transformer_xl, always},
};

}  // namespace

std::optional<LayeredModel> layered_model(
    nn::Model& model, torch::Device device, Precision precision) {
  if (!device.is_cpu() || !model.options.plain_layers()) return std::nullopt;
  for (const auto& [name, weight] : model.named_weights())
    if (weight.scalar_type() != torch::kFloat32 || !weight.is_contiguous()) return std::nullopt;
  for (const auto& layered : kLayered) {
    if (model.options.arch != layered.arch || !layered.fits(model)) continue;
    auto made = layered.make(model, precision);
    made.steps.back().gives_keys = !made.key_is_output;
    return made;
  }
  return std::nullopt;
}

}  // namespace infer
