#include "infer/loops/make_engine.h"

#include "infer/decode/block_kernels.h"
#include "infer/loops/layered_models.h"
#include "infer/loops/transformer_engine.h"

namespace infer {
namespace {

constexpr std::int64_t kLeast = 64;  // in slots

constexpr std::int64_t kNumbers = 3;  // numbers per row besides those of its tokens

nn::RingDecoder* decoder_of(const nn::Model& model) {
  auto* const decoder = dynamic_cast<nn::RingDecoder*>(model.architecture.get());
  return decoder != nullptr && decoder->in_rings() ? decoder : nullptr;
}

// Encodes batches with an engine for packed weights, which is made when reach and bounds are set.
class EngineArchitecture : public nn::Architecture {
 public:
  EngineArchitecture(
      const nn::Model& model, torch::Device device, Precision precision, const PackedModel* packed)
      : model_(model), device_(device), precision_(precision), packed_(packed) {}

  nn::Hidden forward(const nn::Batch& batch, nn::State* state) override {
    const torch::NoGradGuard no_gradient;
    if (!engine_) engine_ = make_engine(model_, device_, precision_, false, packed_);
    const auto rows = batch.rows(), steps = batch.steps();
    const auto call = state == nullptr ? 0 : state->counts["call"];
    if (call == 0) engine_->open(rows);
    else if (call != calls_) core::bug("an engine encodes one State at a time");
    ++calls_;
    if (state != nullptr) state->counts["call"] = calls_;
    std::vector<RowInput> feeds(static_cast<std::size_t>(rows));
    std::vector<std::int64_t> real;
    const auto runs = batch.place.run.accessor<std::int64_t, 2>();
    const auto tokens = batch.inputs.accessor<std::int64_t, 2>();
    for (std::int64_t row = 0; row < rows; ++row) {
      auto& feed = feeds[static_cast<std::size_t>(row)];
      feed.fresh = call != 0 && batch.fresh[row].item<bool>();
      for (std::int64_t t = 0; t < steps; ++t) {
        if (runs[row][t] < 0) continue;
        feed.tokens.push_back(tokens[row][t]);
        real.push_back(row * steps + t);
      }
    }
    const nn::Hidden fed = engine_->feed(feeds);
    const auto index = torch::tensor(real, torch::kInt64);
    const auto placed = [&](const torch::Tensor& of) {
      return torch::zeros({rows * steps, of.size(1)})
          .index_copy_(0, index, of)
          .view({rows, steps, -1});
    };
    return {placed(fed.output), placed(fed.key)};
  }

  std::int64_t d_model() const override { return model_.architecture->d_model(); }
  std::int64_t d_key() const override { return model_.architecture->d_key(); }
  nn::Carry carry() const override { return model_.architecture->carry(); }
  std::optional<std::int64_t> context() const override { return model_.architecture->context(); }
  void forget(nn::State& /*state*/, std::int64_t keep) override { engine_->forget(keep); }
  void set_reach(const nn::LayerReach& reach) override { model_.architecture->set_reach(reach); }
  void bound_slots(const nn::SlotBound& bound) override { model_.architecture->bound_slots(bound); }
  std::shared_ptr<nn::Embedding> embedding() override { return model_.architecture->embedding(); }

 private:
  nn::Model model_;
  torch::Device device_;
  Precision precision_;
  const PackedModel* packed_;
  std::unique_ptr<Engine> engine_;
  std::int64_t calls_ = 0;
};

}  // namespace

std::unique_ptr<Engine> make_engine(nn::Model& model, torch::Device device, Precision precision,
    bool record, const PackedModel* packed) {
  if (TransformerEngine::fits(model, device, packed))
    return std::make_unique<TransformerEngine>(model, precision, packed);
  if (auto layered = layered_model(model, device, precision))
    return std::make_unique<LayeredEngine>(model, std::move(*layered), precision);
  if (DeviceEngine::fits(model, device) && precision == Precision::float32)
    return std::make_unique<DeviceEngine>(model, device, record);
  if (precision != Precision::float32)
    core::fail(core::Code::unavailable,
        "--dtype: not supported for this {}{}; leave it out, or see SPEED of sample(1)",
        model.options.arch, device.is_cpu() ? "" : " on a device");
  return std::make_unique<ModuleEngine>(model, device);
}

model::Loaded load_to_decode(const std::string& path, torch::Device device, const std::string& type,
    const std::string& adapter, std::optional<torch::Dtype> others) {
  const auto precision = parse_precision(type_to_load(type, path, device, adapter));
  if (precision == Precision::float32 || precision == Precision::file) others = torch::kFloat32;
  if (precision == Precision::file) {
    if (!model::is_gguf(path))
      core::bad_usage("--dtype file: {} is not a GGUF file; leave it out", path);
    if (!device.is_cpu()) core::bad_usage("--dtype file: requires --device cpu");
    if (!adapter.empty())
      core::bad_usage("--dtype file: cannot be combined with --adapter; leave it out");
  }
  // Weights that will be packed need no float32 copy first.
  auto packed = device.is_cpu() ? std::make_shared<PackedModel>(precision) : nullptr;
  return model::load(path, device, others, adapter, std::move(packed));
}

const PackedModel* packed_in(const model::Loaded& loaded) {
  const auto* const packed = dynamic_cast<const PackedModel*>(loaded.taker.get());
  return packed == nullptr || packed->empty() ? nullptr : packed;
}

std::string type_to_load(const std::string& type, const std::string& path, torch::Device device,
    const std::string& adapter) {
  if (type != "auto") return type;
  if (!has_block_kernels() || !device.is_cpu() || !adapter.empty() || !model::is_gguf(path))
    return "float32";
  bool blocks = false;
  const model::GgufFile file(path);
  for (const auto& [name, tensor] : file.tensors()) {
    if (tensor.type->elements == 1) continue;
    if (block_format(tensor.type->id) == nullptr) return "float32";
    blocks = true;
  }
  return blocks ? "file" : "float32";
}

std::string type_loaded(const std::string& type, const model::Loaded& loaded) {
  if (type != "auto") return type;
  const auto* const packed = packed_in(loaded);
  return packed != nullptr && packed->precision() == Precision::file ? "file" : "float32";
}

void ScoringOptions::fields(core::FieldList& f) {
  const auto in_computing = f.group("Computing");
  DeviceOptions::fields(f);
  f("dtype", precision,
      "data type of the weights; auto: file for a GGUF file in blocks, else float32",
      {"auto", "float32", "float64", "bfloat16", "int8", "file"});
}

model::Loaded load_with_type(const std::string& path, torch::Device device,
    const std::string& asked, const std::string& adapter) {
  const auto type = type_to_load(asked, path, device, adapter);
  return packs(type) ? load_to_decode(path, device, type, adapter, torch::kFloat32)
                     : model::load(path, device, nn::dtype(type), adapter);
}

model::Loaded load_to_score(const std::string& path, torch::Device device, const std::string& type,
    const std::string& adapter) {
  auto loaded = load_with_type(path, device, type, adapter);
  const auto own = type_loaded(type, loaded);
  if (!packs(own)) return loaded;
  auto& model = *loaded.model;
  const auto precision = parse_precision(own);
  auto encoder = std::make_shared<EngineArchitecture>(model, device, precision, packed_in(loaded));
  model.head = decoding_head(model, precision, packed_in(loaded));
  model.architecture = std::move(encoder);
  return loaded;
}

bool DeviceEngine::fits(const nn::Model& model, torch::Device device) {
  return !device.is_cpu() && decoder_of(model) != nullptr;
}

DeviceEngine::DeviceEngine(nn::Model& model, torch::Device device, bool record)
    : model_(model), decoder_(*decoder_of(model)), device_(device), ring_(kLeast),
      token_(device, record) {}

void DeviceEngine::open(std::int64_t rows) {
  if (rows != std::ssize(rows_)) ring_ = nn::KvRing(kLeast), kept_ = {}, token_.reset();
  rows_.assign(static_cast<std::size_t>(rows), {});
  marked_.reset();
  unused_ = true;
}

nn::Hidden DeviceEngine::feed(const std::vector<RowInput>& feeds) {
  const torch::NoGradGuard no_gradient;
  if (marked_) marked_->feeds = feeds;
  std::int64_t steps = 1;
  for (const auto& feed : feeds) steps = std::max(steps, std::ssize(feed.tokens));
  start_rows(feeds);
  make_room(steps);
  const auto step_numbers = numbers(feeds, steps);
  const bool full = std::ranges::all_of(
      feeds, [&](const auto& feed) { return std::ssize(feed.tokens) == steps; });
  const nn::Hidden all =
      full && steps == 1 ? run_token(step_numbers) : run(nn::upload(step_numbers, device_), full);
  if (model_.architecture->carry() == nn::Carry::constant) forget(0);
  if (std::exchange(moved_, false)) token_.reset();
  std::vector<std::int64_t> real;
  for (std::int64_t row = 0; row < std::ssize(feeds); ++row)
    for (std::int64_t t = 0; t < std::ssize(feeds[static_cast<std::size_t>(row)].tokens); ++t)
      real.push_back(row * steps + t);
  const auto index = nn::upload(torch::tensor(real, torch::kInt64), device_);
  return all.flatten().select(index);
}

void DeviceEngine::start_rows(const std::vector<RowInput>& feeds) {
  const bool all = std::exchange(unused_, false);
  const auto rows = std::ssize(feeds);
  auto fresh = torch::zeros({rows}, torch::kBool);
  bool* const begins = fresh.data_ptr<bool>();
  std::int64_t longest = 0;
  for (std::size_t row = 0; row < feeds.size(); ++row) {
    longest = std::max(longest, std::ssize(feeds[row].source));
    begins[row] = all || feeds[row].fresh;
    if (begins[row]) rows_[row] = {};
  }
  kept_.reset(fresh);
  if (longest == 0) return;
  auto source = torch::full({rows, longest}, -1, torch::kInt64);
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto& from = feeds[static_cast<std::size_t>(row)].source;
    std::copy(from.begin(), from.end(), source[row].data_ptr<std::int64_t>());
  }
  auto made = kept_.given();
  decoder_.read_sources(source, fresh, made);
  keep(made);
}

// Makes room for `steps` more tokens in every row.
void DeviceEngine::make_room(std::int64_t steps) {
  std::int64_t slots = ring_.slots(), needed = 0;
  std::vector<std::int64_t> last;
  for (const auto& row : rows_) {
    needed = std::max(needed, row.held() + steps);
    last.push_back(row.end - 1);
  }
  if (needed <= slots) return;
  while (slots < needed) slots *= 2;
  token_.reset();
  ring_.grow(slots, nn::upload(torch::tensor(last, torch::kInt64).unsqueeze(1), device_));
}

// Returns the arguments of a call on the device, (B, 3 T + 3) int64: ids, positions, slots, then
// the row's newest position, its oldest position and its number of tokens. From here on the rows
// count the tokens.
torch::Tensor DeviceEngine::numbers(const std::vector<RowInput>& feeds, std::int64_t steps) {
  const auto context = model_.architecture->context();
  auto all = torch::zeros({std::ssize(feeds), 3 * steps + kNumbers}, torch::kInt64);
  auto* ids = all.data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < feeds.size(); ++i, ids += 3 * steps + kNumbers) {
    const auto& tokens = feeds[i].tokens;
    Row& row = rows_[i];
    auto *const positions = ids + steps, *const slots = positions + steps;
    if (context && row.end + std::ssize(tokens) > *context)
      core::bad_data("a row of {} tokens is longer than the {} learned positions",
          row.end + std::ssize(tokens), *context);
    std::copy(tokens.begin(), tokens.end(), ids);
    for (std::int64_t t = 0; t < steps; ++t) {
      if (t < std::ssize(tokens)) positions[t] = row.end + t;
      slots[t] = (row.end + t) % ring_.slots();
    }
    row.end += std::ssize(tokens);
    slots[steps] = row.end - 1;
    slots[steps + 1] = row.begin;
    slots[steps + 2] = std::ssize(tokens);
  }
  return all;
}

nn::Hidden DeviceEngine::run(const torch::Tensor& numbers, bool full) {
  const auto steps = (numbers.size(1) - kNumbers) / 3;
  const auto part = [&](std::int64_t i, std::int64_t n) { return numbers.narrow(1, i * steps, n); };
  const auto of_row = numbers.narrow(1, 3 * steps, kNumbers).split(1, 1);
  ring_.place({part(1, steps), part(2, steps), of_row[0], of_row[1], of_row[2], full});
  auto kept = kept_.given();
  auto made = decoder_.decode(part(0, steps), ring_, kept);
  keep(kept);
  return made;
}

nn::Hidden DeviceEngine::run_token(const torch::Tensor& numbers) {
  const auto step_numbers = nn::upload(numbers, device_);
  if (now_.defined() && now_.sizes() == step_numbers.sizes()) {
    now_.copy_(step_numbers);
  } else {
    now_ = step_numbers;
  }
  token_.run([this] { next_ = run(now_, /*full=*/true); });
  return next_;
}

void DeviceEngine::select(const std::vector<std::int64_t>& rows) {
  const auto index = torch::tensor(rows, torch::kInt64);
  const bool stayed = kept_.select(index);
  if (rows.size() != rows_.size() || !stayed) token_.reset();
  rows_ = chosen(rows_, rows);
  ring_.select(nn::upload(index, device_));
  if (!marked_) return;
  marked_->rows = chosen(marked_->rows, rows);
  marked_->kept.select(index);
  if (!marked_->feeds.empty()) marked_->feeds = chosen(marked_->feeds, rows);
}

void DeviceEngine::forget(std::int64_t keep) {
  for (auto& row : rows_) row.begin = std::max(row.begin, row.end - keep);
}

void DeviceEngine::mark() {
  if (!decoder_.carries()) return;
  marked_ = {unused_, rows_, kept_.given(), {}};
  for (auto& [name, tensor] : marked_->kept.tensors) tensor = tensor.clone();
}

void DeviceEngine::roll_back(const std::vector<std::int64_t>& tokens) {
  if (!decoder_.carries()) {
    for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i].end -= tokens[i];
    return;
  }
  auto marked = std::move(*marked_);
  marked_.reset();
  if (std::ranges::all_of(tokens, [](auto n) { return n == 0; })) return;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    auto& fed = marked.feeds[i].tokens;
    fed.resize(fed.size() - static_cast<std::size_t>(tokens[i]));
  }
  unused_ = marked.unused;
  rows_ = std::move(marked.rows);
  keep(marked.kept);
  feed(marked.feeds);
}

}  // namespace infer
