#include "model/weights.h"

#include "model/adapter.h"
#include "nn/base/pages.h"
#include "nn/base/runtime.h"
#include "nn/layers/ngram_memory.h"

namespace model {
namespace {

std::string print(torch::IntArrayRef shape) {
  return fmt::format("({})", fmt::join(shape.begin(), shape.end(), ", "));
}

/// Turns an exception that absurd options cause inside torch into Error{bad_config}.
template <class Make> auto made(const std::string& origin, const Make& make) {
  try {
    return make();
  } catch (const c10::Error& error) {
    if (nn::is_out_of_memory(error)) throw;
    const std::string text = error.what_without_backtrace();
    core::bad_config("{}: describes no valid model: {}", origin, text.substr(0, text.find('\n')));
  } catch (const core::Error& error) { core::fail(error.code(), "{}: {}", origin, error.what()); }
}

bool is_finite(const torch::Tensor& tensor) {
  if (tensor.numel() == 0) return true;
  const auto [least, most] = tensor.aminmax();  // NaN propagates; no copy is made
  return torch::isfinite(least).item<bool>() && torch::isfinite(most).item<bool>();
}

/// The fingerprint of weights. Weights must be added as float32 in the order of their names.
class WeightsDigest {
 public:
  void add(const std::string& name, const torch::Tensor& values) {
    hash_tensor(weights_, name, values);
  }
  void add_rows(const std::string& name, const torch::Tensor& values,
      const std::function<void(const torch::Tensor& rows)>& after) {
    hash_rows(weights_, name, values, after);
  }
  /// Adds a weight in parts: its name, then rows in order.
  void begin(const std::string& name, torch::IntArrayRef sizes) {
    hash_name(weights_, name, sizes);
  }
  void add_part(const torch::Tensor& rows) { hash_numbers(weights_, rows); }
  core::Digest of(const nn::ModelOptions& options, std::int64_t vocabulary) {
    core::Hasher all;
    all.update(options_digest(options, vocabulary).hex());
    all.update(weights_.digest().hex());
    return all.digest();
  }

 private:
  core::Hasher weights_;
};

/// Returns 0 to n - 1 in the order of their names.
std::vector<std::size_t> by_name(
    std::size_t n, const std::function<std::string(std::size_t)>& name) {
  auto order = core::generated(n, std::identity());
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return name(a) < name(b); });
  return order;
}

// Returns how many rows of a matrix are read at once: about 8 MiB in float32, at least one.
std::int64_t rows_of_part(torch::IntArrayRef sizes) {
  constexpr std::int64_t kPartNumbers = std::int64_t{1} << 21;
  const auto row = c10::multiply_integers(sizes.slice(1));
  return std::max<std::int64_t>(1, kPartNumbers / std::max<std::int64_t>(1, row));
}

// Returns whether two tensors of the files are equal. Reads matrices a part at a time.
bool equal_tensors(const TensorFiles& files, const std::string& a, const std::string& b) {
  const auto &one = files.entry(a), &other = files.entry(b);
  if (one.shape != other.shape) return false;
  if (one.dtype != other.dtype || one.shape.size() < 2) return files.read(a).equal(files.read(b));
  auto sizes = one.shape;
  const auto rows = sizes[0], step = rows_of_part(sizes);
  for (std::int64_t first = 0; first < rows; first += step) {
    sizes[0] = std::min(step, rows - first);
    const auto x = torch::empty(sizes, one.dtype), y = torch::empty(sizes, one.dtype);
    files.read_rows_into(a, first, x);
    files.read_rows_into(b, first, y);
    if (!x.equal(y)) return false;
  }
  return true;
}

// Throws Error{bad_data} if the files have fewer tensors than there are experts.
Stacking stacking_in(const Config& config, const TensorFiles& files) {
  const auto& options = config.options;
  const auto count = options.transformer.experts.count;
  if (config.family == nullptr) return Stacking::each;
  const auto name = stacked_name(*config.family);
  if (files.has(name) || files.has(bare_name(*config.family, name))) return Stacking::stacked;
  if (options.shape.layers * count > static_cast<std::int64_t>(files.size()))
    core::bad_data("{}: has only {} tensors for {} layers of {} experts", files.name(),
        files.size(), options.shape.layers, count);
  return Stacking::each;
}

constexpr const char* kHeadWeight = "lm_head.weight";

// Returns whether the head of the files is their embedding.
bool ties_head(const Config& config) { return config.options.vocabulary.tied || config.untied; }

// Replaces the numbers of a parameter by one NaN, and releases their memory.
void give_up(const torch::Tensor& weight) {
  torch::Tensor(weight).set_data(
      torch::full({1}, std::numeric_limits<float>::quiet_NaN(), weight.options())
          .expand(weight.sizes()));
}

// Gives up the weights that `taker` (null: none) takes, and returns which these are. They are given
// up before any is read: the memory of each would otherwise be a hole of the heap in which the next
// parts are read, and the holes together would become as large as the model.
std::vector<bool> taken_weights(
    const nn::Model& model, const NamedTensors& weights, WeightTaker* taker) {
  std::vector<bool> taken(weights.size(), false);
  if (taker == nullptr) return taken;
  std::vector<torch::Tensor> left;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto& weight = weights[i].second;
    taken[i] = taker->takes(model, weight);
    if (taken[i]) {
      give_up(weight);
    } else {
      left.push_back(weight);
    }
  }
  taker->leaves(left);
  return taken;
}

// Reads a weight in parts, which requires StoredWeights::has_rows(), and adds them to `digest`.
// Reports at most one fault.
void read_parts(const StoredWeights& stored, std::size_t i, WeightsDigest& digest,
    const FaultFound& found,
    const std::function<void(std::int64_t first, const torch::Tensor& rows)>& then = nullptr) {
  auto sizes = stored.shape(i);
  const auto all = sizes[0];
  digest.begin(stored.name(i), sizes);
  sizes[0] = std::min(all, rows_of_part(sizes));
  const auto part = torch::empty(sizes, torch::kFloat32);
  bool any = false;
  for (std::int64_t first = 0; first < all; first += sizes[0]) {
    const auto rows = part.narrow(0, 0, std::min(sizes[0], all - first));
    stored.read_rows_into(i, first, rows, [&](const std::string& fault) {
      if (!std::exchange(any, true)) found(fault);
    });
    digest.add_part(rows);
    if (then) then(first, rows);
  }
}

}  // namespace

void refuse(const std::string& fault) { core::bad_data("{}", fault); }

StoredWeights::StoredWeights(
    const Config& config, const std::string& config_origin, const TensorFiles& files)
    : config_(config), files_(files) {
  if (config.options.shape.layers > static_cast<std::int64_t>(files.size()))
    core::bad_data("{}: has only {} tensors for {} layers", files.name(), files.size(),
        config.options.shape.layers);
  const auto stacking = stacking_in(config, files);
  const auto shapes = made(config_origin, [&] {
    const nn::ShapesOnly shapes_only;
    const nn::NoFirstValues unset;
    return nn::Model(config.options, config.vocabulary).named_weights();
  });
  for (const auto& [name, tensor] : shapes)
    weights_.push_back({name, tensor.sizes().vec(),
        pieces_of(config.family, config.options, name, tensor.size(0), stacking)});
  if (config.family != nullptr) find_names();
  if (!config.untied) return;
  for (auto& weight : weights_)
    if (weight.name == kHeadWeight) weight.pieces = weights_[0].pieces;
}

void StoredWeights::find_names() {
  const Family& family = *config_.family;
  // transformers keeps these names in a text model that it read of one with images.
  if (config_.part || family.type == "qwen3_5_text") find_names_of_part();
  // Some files leave out the prefix that all names share.
  const auto first = std::find_if(weights_.begin(), weights_.end(), [&](const Weight& weight) {
    const auto& name = weight.pieces[0].tensor;
    return files_.has(name) || files_.has(bare_name(family, name));
  });
  if (first != weights_.end() && !files_.has(first->pieces[0].tensor))
    for (auto& weight : weights_)
      for (auto& piece : weight.pieces) piece.tensor = bare_name(family, piece.tensor);
  // Of two tensors that share memory, safetensors' save_model keeps the first name.
  auto& embedding = weights_[0].pieces[0].tensor;
  const auto head = head_name(family, config_.options);
  if (ties_head(config_) && !files_.has(embedding) && files_.has(head)) embedding = head;
}

// Finds the prefix of the names of the text part of a multimodal model.
void StoredWeights::find_names_of_part() {
  const auto& base = config_.family->row.base;
  for (const std::string before : {"language_model.", "model.language_model."}) {
    const bool bare = before.starts_with(base);
    const auto renamed = [&](const std::string& name) {
      return before + (bare && name.starts_with(base) ? name.substr(base.size()) : name);
    };
    if (!files_.has(renamed(weights_[0].pieces[0].tensor))) continue;
    for (auto& weight : weights_)
      for (auto& piece : weight.pieces)
        if (const auto there = renamed(piece.tensor);
            files_.has(there) || !files_.has(piece.tensor))  // a head may stand outside
          piece.tensor = there;
    return;
  }
}

std::int64_t StoredWeights::parameter_count() const {
  return core::sum_of(weights_, [](const auto& w) { return c10::multiply_integers(w.shape); });
}

std::int64_t StoredWeights::active_parameter_count() const {
  const auto& experts = config_.options.transformer.experts;
  std::int64_t count = 0;
  for (const auto& weight : weights_) {
    const auto numbers = c10::multiply_integers(weight.shape);
    const bool of_experts = weight.name.find(".experts.c_") != std::string::npos;
    count += of_experts ? numbers / experts.count * experts.per_token : numbers;
  }
  return count;
}

std::string StoredWeights::fault(const Weight& weight, const Piece& piece) const {
  const auto shape = piece.shape_there(weight.shape);
  if (!files_.has(piece.tensor))
    return fmt::format("{}: has no tensor {} {}", files_.name(), piece.tensor, print(shape));
  const auto& entry = files_.entry(piece.tensor);
  const auto& file = files_.file_of(piece.tensor);
  if (entry.shape != shape)
    return fmt::format("{}: tensor {} has shape {}, but {} requires {}", file, piece.tensor,
        print(entry.shape), config_.read_from, print(shape));
  if (!c10::isFloatingType(entry.dtype))
    return fmt::format("{}: tensor {} has type {}, which is not floating point", file, piece.tensor,
        c10::toString(entry.dtype));
  return {};
}

void StoredWeights::check(const FaultFound& found) const {
  for (const auto& weight : weights_)
    for (const auto& piece : weight.pieces)
      if (const auto wrong = fault(weight, piece); !wrong.empty()) found(wrong);
  check_others(found);
}

void StoredWeights::check_others(const FaultFound& found) const {
  std::set<std::string> known;
  for (const auto& weight : weights_)
    for (const auto& piece : weight.pieces) known.insert(piece.tensor);
  for (const auto& name : files_.tensors()) {
    if (known.count(name) > 0 || is_buffer(config_.family, name)) continue;
    if (config_.part &&
        (name.find("vision_tower.") != name.npos || name.find(".visual.") != name.npos ||
            name.find("multi_modal_projector.") != name.npos))
      continue;
    if (config_.family == nullptr || !ties_head(config_) ||
        name != head_name(*config_.family, config_.options)) {
      found(fmt::format("{}: tensor {} {} matches no part of the model", files_.file_of(name), name,
          print(files_.entry(name).shape)));
      continue;
    }
    // transformers ties the head to the embedding even if the file has a head.
    const auto& embedding = weights_[0].pieces[0].tensor;
    if (!files_.has(embedding)) continue;
    if (!equal_tensors(files_, name, embedding))
      found(fmt::format("{}: {} differs from {}, but config.json ties them", files_.file_of(name),
          name, embedding));
  }
}

bool StoredWeights::fits(std::size_t i) const {
  const auto& weight = weights_[i];
  return std::all_of(weight.pieces.begin(), weight.pieces.end(),
      [&](const Piece& piece) { return fault(weight, piece).empty(); });
}

void StoredWeights::read_into(
    std::size_t i, const torch::Tensor& weight, const FaultFound& found) const {
  for (const auto& piece : weights_[i].pieces) {
    const std::string& name = piece.tensor;
    const torch::Tensor target = weight.narrow(0, piece.begin, piece.rows);
    if (piece.layout == Layout::as_is && files_.entry(name).dtype == target.scalar_type()) {
      files_.read_into(name, target);  // no copy, because embeddings are large
    } else {
      target.copy_(piece.here(files_.read(name)));
    }
    if (const double by = factor(i); by != 1) target.mul_(by);
    if (!is_finite(target))
      found(
          fmt::format("{}: tensor {} has a value that is not finite", files_.file_of(name), name));
  }
}

bool StoredWeights::has_rows(std::size_t i) const {
  const auto& weight = weights_[i];
  return weight.shape.size() >= 2 && weight.pieces.size() == 1 &&
         weight.pieces[0].layout == Layout::as_is &&
         files_.entry(weight.pieces[0].tensor).shape == weight.shape;
}

void StoredWeights::read_rows_into(
    std::size_t i, std::int64_t first, const torch::Tensor& rows, const FaultFound& found) const {
  const auto& name = weights_[i].pieces[0].tensor;
  const auto dtype = files_.entry(name).dtype;
  if (dtype == rows.scalar_type()) {
    files_.read_rows_into(name, first, rows);
  } else {
    const auto stored = torch::empty(rows.sizes(), dtype);
    files_.read_rows_into(name, first, stored);
    torch::Tensor(rows).copy_(stored);
  }
  if (const double by = factor(i); by != 1) torch::Tensor(rows).mul_(by);
  if (!is_finite(rows))
    found(fmt::format("{}: tensor {} has a value that is not finite", files_.file_of(name), name));
}

torch::Tensor StoredWeights::map(std::size_t i, torch::Dtype dtype) const {
  const auto& pieces = weights_[i].pieces;
  const bool as_is = pieces.size() == 1 && pieces[0].layout == Layout::as_is && factor(i) == 1 &&
                     files_.entry(pieces[0].tensor).dtype == dtype;
  return as_is ? files_.map(pieces[0].tensor) : torch::Tensor();
}

std::vector<GgufRows> StoredWeights::blocks(std::size_t i) const {
  std::vector<GgufRows> all;
  for (const auto& piece : weights_[i].pieces) {
    const auto rows = files_.blocks(piece.tensor);
    if (!rows || rows->rows != piece.rows || piece.layout != Layout::as_is || factor(i) != 1)
      return {};
    all.push_back(*rows);
  }
  return all;
}

NamedTensors weights_to_write(const nn::Model& model, const Family* family) {
  NamedTensors tensors;
  for (const auto& [name, tensor] : model.named_weights())
    for (const auto& piece : pieces_of(family, model.options, name, tensor.size(0)))
      tensors.emplace_back(
          piece.tensor, piece.there(tensor.detach().narrow(0, piece.begin, piece.rows)));
  return tensors;
}

torch::Dtype dtype_of(const TensorFiles& files) {
  for (const auto& name : files.tensors())
    if (files.entry(name).dtype != torch::kBFloat16) return torch::kFloat32;
  return torch::kBFloat16;
}

torch::Dtype stored_type(const TensorFiles& files, const Family* family) {
  std::set<torch::Dtype> types;
  for (const auto& name : files.tensors())
    if (!is_buffer(family, name)) types.insert(files.entry(name).dtype);
  for (const auto half : {torch::kBFloat16, torch::kHalf})
    if (types == std::set{half}) return half;
  return torch::kFloat32;
}

ReadModel read_model(const Config& config_of_files, const std::string& config_origin,
    const TensorFiles& files, torch::Dtype dtype, const Adapter* adapter, WeightTaker* taker) {
  Config config = config_of_files;
  config.untied = adapter != nullptr && adapter->unties(config);
  if (config.untied) config.options.vocabulary.tied = false;
  const StoredWeights stored(config, config_origin, files);
  stored.check(refuse);
  std::vector<std::vector<Adapter::Change>> changes(stored.size());
  if (adapter != nullptr) changes = adapter->changes(config, stored);
  const torch::NoGradGuard no_grad;
  const nn::NoFirstValues unset;  // torch's generator is not advanced
  const nn::ParameterType type(dtype);
  const auto model = std::make_shared<nn::Model>(config.options, config.vocabulary);
  const auto weights = model->named_weights();
  const auto taken = taken_weights(*model, weights, taker);
  std::map<std::string, nn::NgramMemory*> tables;
  for (const auto& item : model->named_modules())
    if (auto* const memory = dynamic_cast<nn::NgramMemory*>(item.value().get()))
      tables[item.key() + ".tables"] = memory;
  WeightsDigest as_stored, as_changed;
  bool digested = true;
  for (const auto i : by_name(weights.size(), [&](std::size_t i) { return weights[i].first; })) {
    const auto& [name, weight] = weights[i];
    const auto table = tables.find(name);
    const bool stays = !taken[i] && table != tables.end() && changes[i].empty();
    if (const auto mapped = stays ? stored.map(i, dtype) : torch::Tensor(); mapped.defined()) {
      const auto read = [&, &name = name](const torch::Tensor& rows) {
        if (!is_finite(rows))
          refuse(fmt::format("{}: tensor {} has a value that is not finite", files.name(), name));
        nn::drop_pages(rows);
      };
      as_stored.add_rows(name, mapped, read);
      if (adapter != nullptr) as_changed.add_rows(name, mapped, read);
      table->second->stay_on_disk(mapped);
      continue;
    }
    const auto read = [&, i, &name = name](const torch::Tensor& wide) {
      stored.read_into(i, wide, refuse);
      if (!config.untied || name != kHeadWeight) as_stored.add(name, wide);
      if (adapter == nullptr) return wide;
      adapter->apply(changes[i], wide, refuse);
      as_changed.add(name, wide);
      return wide;
    };
    const auto sizes = weight.sizes().vec();
    const auto fresh = [&] { return read(torch::empty(sizes, torch::kFloat32)); };
    if (taken[i] && adapter == nullptr && taker->take_blocks(weight, stored.blocks(i))) {
      digested = false;
    } else if (taken[i] && adapter == nullptr && stored.has_rows(i)) {
      read_parts(stored, i, as_stored, refuse,
          [&, &weight = weight](auto first, auto& rows) { taker->take(weight, first, rows); });
    } else if (taken[i]) {
      taker->take(weight, 0, fresh());
    } else if (dtype == torch::kFloat32) {
      read(weight);
    } else {
      torch::Tensor(weight).copy_(fresh());
    }
  }
  const auto digest = as_stored.of(config_of_files.options, config.vocabulary);
  return {model, adapter == nullptr ? digest : as_changed.of(config.options, config.vocabulary),
      digest, digested};
}

core::Digest fingerprint(const nn::Model& model) {
  const auto weights = model.named_weights();
  WeightsDigest digest;
  for (const auto i : by_name(weights.size(), [&](std::size_t i) { return weights[i].first; }))
    digest.add(weights[i].first, weights[i].second.detach().to(torch::kFloat32));
  return digest.of(model.options, model.vocabulary);
}

core::Digest fingerprint(
    const Config& config, const StoredWeights& weights, const FaultFound& found) {
  WeightsDigest digest;
  for (const auto i : by_name(weights.size(), [&](std::size_t i) { return weights.name(i); })) {
    if (weights.has_rows(i)) {
      read_parts(weights, i, digest, found);
      continue;
    }
    auto values = torch::empty(weights.shape(i), torch::kFloat32);
    weights.read_into(i, values, found);
    digest.add(weights.name(i), values);
  }
  return digest.of(config.options, config.vocabulary);
}

}  // namespace model
