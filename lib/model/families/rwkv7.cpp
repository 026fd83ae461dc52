#include "model/families/rwkv7.h"

#include "nn/arch/mixer.h"

namespace model {
namespace {

constexpr double kHeadEpsilon = 64e-5, kFileEpsilon = 1e-5;
constexpr std::pair<const char*, std::int64_t> kRankKeys[] = {{"decay_low_rank_dim", 64},
    {"a_low_rank_dim", 64}, {"v_low_rank_dim", 16}, {"gate_low_rank_dim", 128}};

void rank_keys(const ConfigPairs& pairs, std::int64_t d) {
  const auto ranks = nn::rwkv7_ranks(d);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const auto& [key, usual] = kRankKeys[i];
    auto rank = ranks[i];
    pairs.size(key, rank, usual);
    if (rank != ranks[i])
      pairs.from->unsupported(key, fmt::format("{}, not {} as published,", rank, ranks[i]));
  }
}

// "head_dim" goes before "num_heads".
std::int64_t heads_of(const ConfigKeys& keys, std::int64_t d) {
  if (keys.is_null("head_dim")) return keys.size("num_heads", 1);
  const auto width = keys.size("head_dim", 64);
  if (width < 1 || d % width != 0)
    keys.unsupported("head_dim", "a number that does not divide hidden_size");
  return d / width;
}

// fla rounds the width up if only its ratio is given.
std::int64_t network_width(const ConfigKeys& keys, std::int64_t d) {
  if (keys.has("intermediate_size")) return keys.size("intermediate_size", 0);
  const double width = static_cast<double>(d) * keys.number("hidden_ratio", 4);
  if (!(width >= 1 && width < 1e9)) keys.unsupported("hidden_ratio", fmt::format("{}", width));
  return (static_cast<std::int64_t>(width) + 31) / 32 * 32;
}

void expect_plain(const ConfigKeys& keys, std::int64_t d) {
  keys.expect("norm_first", true);
  if (keys.text("hidden_act", "sqrelu") != "sqrelu")
    keys.unsupported("hidden_act", "a function other than sqrelu");
  if (keys.has("attn")) keys.unsupported("attn", "attention in some layers");
  const auto widths = keys.value("value_dim");
  const auto all =
      widths.is_array() ? keys.wholes("value_dim") : std::vector{keys.whole("value_dim", d)};
  if (std::ranges::any_of(all, [d](auto width) { return width != d; }))
    keys.unsupported("value_dim", "a number other than hidden_size");
}

}  // namespace

const Family& rwkv_file_family() {
  static const Family family{"RWKV-LM", rwkv7_keys};
  return family;
}

void rwkv7_keys(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row) {
  auto& shape = options.shape;
  auto& epsilon = options.transformer.norm_epsilon;
  pairs.required("hidden_size", shape.d_model);
  pairs.required("num_hidden_layers", shape.layers);
  pairs("norm_bias", options.transformer.bias, true);
  pairs("norm_eps", epsilon, 1e-5);
  const auto d = shape.d_model;
  if (pairs.to != nullptr) {
    auto& config = *pairs.to;
    config["head_dim"] = d / std::max<std::int64_t>(1, shape.heads);
    config["num_heads"] = shape.heads;
    config["intermediate_size"] = shape.ffn_width();
    config["hidden_act"] = "sqrelu";
    rank_keys(pairs, d);
    return;
  }
  const ConfigKeys& keys = *pairs.from;
  expect_bounded(options, keys.origin());
  shape.heads = heads_of(keys, d);
  const auto width = network_width(keys, d);
  shape.d_ff = width == 4 * d ? 0 : width;
  expect_plain(keys, d);
  const double head = static_cast<double>(d) / static_cast<double>(shape.heads);
  const bool in_file = row.type == rwkv_file_family().type;
  if (std::abs(in_file ? epsilon - kFileEpsilon : head * epsilon - kHeadEpsilon) > 1e-12)
    keys.unsupported("norm_eps", fmt::format("{} with heads of {} channels", epsilon, head));
  if (in_file && !options.transformer.bias) keys.unsupported("norm_bias", "false");
  if (!in_file) rank_keys(pairs, d);
  shape.dropout = 0;
}

}  // namespace model
