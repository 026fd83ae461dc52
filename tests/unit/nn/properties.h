#pragma once
// Properties of every architecture, checked through its interface only.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "nn/arch/model.h"
#include "nn/base/torch.h"

namespace properties {

inline constexpr std::int64_t kVocabulary = 13;
inline constexpr std::int64_t kPad = -1;
using Ids = std::vector<std::int64_t>;

/// Returns rows of one length; kPad is padding. Row r is run r, one segment; `fresh` marks all rows
/// or none.
nn::Batch batch_of(const std::vector<Ids>& rows, bool fresh = true);
Ids random_ids(std::int64_t n, std::uint64_t seed);

/// Returns a model in float64 and evaluation mode with weights large enough for every part to have
/// an effect.
std::shared_ptr<nn::Model> strong_model(const nn::ModelOptions& options, std::uint64_t seed = 1);
/// Two layers, four heads, d 8, no dropout.
nn::ModelOptions small_options(const std::string& arch = "transformer");

/// Returns the largest difference of f and g over n steps, from row `a_row`, step `a_begin` of one
/// and row `b_row`, step `b_begin` of the other.
double difference(const nn::Hidden& a, std::int64_t a_row, std::int64_t a_begin,
    const nn::Hidden& b, std::int64_t b_row, std::int64_t b_begin, std::int64_t n);

/// Returns the largest difference relative to 1 + |b|.
double gap(const torch::Tensor& a, const torch::Tensor& b);
/// A copy of a weight's gradient, dense; zeros if there is none.
torch::Tensor gradient_of(const torch::Tensor& weight);
/// f, g and the gradients of all weights that follow from them, computed in two ways from the
/// model's own weights: within `close`, gradients within 20 times as much.
void check_same(nn::Model& model, const nn::Hidden& got, const nn::Hidden& want, double close);
using Weights = torch::OrderedDict<std::string, torch::Tensor>;
/// Computes an architecture on one row of ids (T) in plain loops from float64 weights: f and g (T,
/// d).
using PlainModel = std::function<nn::Hidden(const torch::Tensor& ids, const Weights& weights)>;
/// Compares f, g and the gradients of the weights of a strong_model() in `type`, on the second of
/// two rows of `steps` tokens, with plain loops: within `close`. Returns the number of gradients.
std::int64_t check_against_loops(const nn::ModelOptions& options, const PlainModel& plain,
    std::int64_t steps, torch::ScalarType type, double close);
/// Returns why a model with these options is refused, or an empty text.
std::string refusal(const nn::ModelOptions& options);

/// The properties. Each makes doctest assertions that name `name`.
void check_all(const std::string& name, const nn::ModelOptions& options);
void check_causality(nn::Model& model);
void check_streaming(nn::Model& model);
void check_padding(nn::Model& model);
void check_rows(nn::Model& model);
void check_gradient_through_state(nn::Model& model);
void check_padding_gradient(nn::Model& model);

}  // namespace properties
