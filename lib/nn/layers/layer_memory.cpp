#include "nn/layers/layer_memory.h"

#include <sstream>

#include "core/units.h"
#include "nn/base/upload.h"
#include "nn/ops/gathered_sum.h"

namespace nn {
namespace {

// Permutes the steps of each row of x (B, T, ...) by `order` (B, T).
torch::Tensor permuted(const torch::Tensor& x, const torch::Tensor& order) {
  auto at = upload(order, x.device());
  while (at.dim() < x.dim()) at = at.unsqueeze(-1);
  return x.gather(1, at.expand_as(x));
}

// Returns slots [begin[b], begin[b] + n) of each row of x (B, S, d). Slots before 0 read slot 0.
torch::Tensor slots(const torch::Tensor& x, const torch::Tensor& begin, std::int64_t n) {
  auto at = (begin.unsqueeze(1) + torch::arange(n, begin.options())).clamp_min(0);
  at = upload(at, x.device()).unsqueeze(2).expand({x.size(0), n, x.size(2)});
  return x.gather(1, at);
}

constexpr std::int64_t kMost = 4'000'000'000;
constexpr const char* kPlaces[] = {"all", "none", "first", "last", "middle", "interleaved"};

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  core::bad_config("layer-memory: {}", fmt::format(format, std::forward<Args>(args)...));
}

std::int64_t number(const std::string& word, const std::string& text) {
  std::int64_t n = -1;
  try {
    n = core::parse_count(text);
  } catch (const core::Error&) {}
  if (n < 0 || n > kMost) refuse("'{}': '{}' is not a number of tokens", word, text);
  return n;
}

std::vector<std::string> words_of(std::string text) {
  std::replace(text.begin(), text.end(), ',', ' ');
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::vector<std::int64_t> parse_list(const std::vector<std::string>& words, std::int64_t layers) {
  std::vector<std::int64_t> lengths;
  if (words == std::vector<std::string>{"none"}) return parse_list({"0"}, layers);
  for (const auto& word : words) lengths.push_back(number(word, word));
  if (lengths.size() == 1) lengths.resize(static_cast<std::size_t>(layers), lengths[0]);
  if (std::ssize(lengths) != layers)
    refuse("{} lengths for {} layers; give one for each, or one for all", lengths.size(), layers);
  return lengths;
}

// Returns the indices of the long layers, from the lowest layer.
std::vector<std::int64_t> places(
    const std::string& place, std::int64_t offset, std::int64_t layers) {
  const auto colon = place.find(':');
  const std::string name = place.substr(0, colon);
  const bool counted = colon != std::string::npos;
  if (std::find(std::begin(kPlaces), std::end(kPlaces), name) == std::end(kPlaces))
    refuse("'place={}': takes all, none, first:N, last:N, middle:N or interleaved:N", place);
  std::int64_t n = name == "all" ? layers : 0;
  const bool fixed = name == "all" || name == "none";
  if (fixed == counted) refuse("'place={}': {} takes {}", place, name, fixed ? "no number" : ":N");
  if (counted) n = number("place=" + place, place.substr(colon + 1));
  if (n > layers) refuse("'place={}': there are {} layers", place, layers);
  if (offset != 0 && name != "interleaved")
    refuse("'offset={}': requires place=interleaved", offset);
  if (offset != 0 && (n == 0 || offset >= layers / n))
    refuse("'offset={}': a group has {} layers", offset, n == 0 ? 0 : layers / n);

  std::vector<std::int64_t> chosen;
  for (std::int64_t i = 0; i < n; ++i) {
    if (name == "first" || name == "all") chosen.push_back(i);
    else if (name == "last") chosen.push_back(layers - n + i);
    else if (name == "middle") chosen.push_back((layers - n) / 2 + i);
    else if (name == "interleaved") chosen.push_back((i + 1) * layers / n - 1 - offset);
  }
  return chosen;
}

}  // namespace

RealFirst::RealFirst(const Batch& batch) {
  const auto real = batch.place.run >= 0;
  count_ = real.sum(1);
  RowReads::of_tokens(torch::arange(real.size(1)) < count_.unsqueeze(1));
  if (real.all().item<bool>()) return;
  order_ = real.logical_not().to(torch::kInt64).argsort(/*stable=*/true, 1);
  inverse_ = order_.argsort(/*stable=*/true, 1);
}

torch::Tensor RealFirst::pack(const torch::Tensor& x) const {
  return dense() ? x : permuted(x, order_);
}

torch::Tensor RealFirst::packed_ids(const Batch& batch) const {
  const auto& ids = batch.inputs;
  if (dense()) return ids;
  return pack(ids.masked_fill(upload(batch.place.run < 0, ids.device()), 0));
}

torch::Tensor RealFirst::unpack(const torch::Tensor& x) const {
  return dense() ? x : permuted(x, inverse_);
}

LayerMemory::LayerMemory(const Batch& batch, State* state)
    : RealFirst(batch), state_(state), steps_(batch.steps()) {
  seen_ = torch::zeros_like(count());
  if (state_ == nullptr) return;
  if (state_->has("seen")) {
    seen_ = state_->tensors["seen"].cpu();
    if (seen_.size(0) != batch.rows())
      core::bug("a state of {} rows cannot continue with a batch of {} rows", seen_.size(0),
          batch.rows());
    if (batch.fresh.defined()) seen_ = seen_.masked_fill(batch.fresh, 0);
  }
  state_->reset(batch.fresh);
  state_->tensors["seen"] = seen_ + count();
}

std::int64_t LayerMemory::remembered(const std::string& name, std::int64_t length) const {
  if (state_ == nullptr || !state_->has(name + ".memory")) return 0;
  const auto kept = state_->tensors.at(name + ".memory").size(1);
  return std::min({kept, length, seen_.max().item<std::int64_t>()});
}

torch::Tensor LayerMemory::extend(
    const std::string& name, const torch::Tensor& x, std::int64_t length) {
  if (state_ == nullptr || length == 0) return x;
  const auto before = remembered(name, length);
  auto& memory = state_->tensors[name + ".memory"];
  auto all = x;
  if (before > 0 && memory.size(2) != x.size(2))
    core::bug(
        "{}: a state of width {} cannot continue with width {}", name, memory.size(2), x.size(2));
  if (before > 0) all = torch::cat({memory.narrow(1, memory.size(1) - before, before), x}, 1);
  // Row b's tokens end before slot before + count[b].
  const auto keep = std::min(length, before + count().max().item<std::int64_t>());
  memory = dense() ? all.narrow(1, before + steps_ - keep, keep).clone()
                   : slots(all, count() + (before - keep), keep);
  return all;
}

torch::Tensor LayerMemory::first_valid(std::int64_t remembered) const {
  const auto first = (remembered - seen_).clamp_min(0);
  return first.any().item<bool>() ? first : torch::Tensor();
}

torch::Tensor FixedLayerPast::extend(
    const std::string& name, const torch::Tensor& x, std::int64_t length) {
  if (length == 0) return x;
  auto& memory = kept_.tensors[name + ".memory"];
  if (!memory.defined()) memory = torch::zeros({x.size(0), length, x.size(2)}, x.options());
  auto all = torch::cat({memory, x}, 1);
  memory =
      place_.full ? all.narrow(1, x.size(1), length) : slots(all, place_.count.squeeze(1), length);
  return all;
}

torch::Tensor FixedLayerPast::first_valid(std::int64_t remembered) const {
  const auto seen = place_.last + 1 - place_.count;  // (B, 1): number before this call
  return (remembered - seen).clamp_min(0).squeeze(1);
}

std::vector<std::int64_t> parse_layer_memory(const std::string& pattern, std::int64_t layers) {
  const auto words = words_of(pattern);
  if (words.empty()) refuse("is empty; give lengths, or a pattern such as long=512 place=last:2");
  if (pattern.find('=') == std::string::npos) return parse_list(words, layers);

  std::map<std::string, std::string> values = {
      {"long", "0"}, {"short", "0"}, {"offset", "0"}, {"place", ""}};
  for (const auto& word : words) {
    const auto equals = word.find('=');
    const auto key = word.substr(0, equals);
    if (equals == std::string::npos || values.count(key) == 0)
      refuse("'{}': takes long=M, short=M, place=PLACE and offset=K", word);
    values[key] = word.substr(equals + 1);
  }
  if (values["place"].empty()) refuse("'{}': place= is missing", pattern);
  const auto value = [&](const char* key) {
    return number(std::string(key) + "=" + values[key], values[key]);
  };
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(layers), value("short"));
  for (const auto layer : places(values["place"], value("offset"), layers))
    lengths[static_cast<std::size_t>(layer)] = value("long");
  return lengths;
}

}  // namespace nn
