#pragma once
// How a text is scored: windows over the stream, and the memories at test time.

#include <cstdint>
#include <string>

#include "core/options.h"
#include "infer/store_options.h"
#include "model/folder.h"
#include "nn/memory.h"
#include "nn/model.h"

namespace infer {

/// Sliding windows over a stream. The first window scores all its targets; each later one starts
/// `stride` tokens further and scores those that are new (its last `stride`).
struct WindowOptions {
  std::int64_t window = 0;       ///< tokens fed at once; 0: the model's training segment
  std::int64_t stride = 0;       ///< 0: window
  std::string restart = "none";  ///< "document": each document is a stream of its own
  std::string carry = "auto";    ///< "on": State goes from block to block, nothing is encoded twice
  std::int64_t batch_tokens = 4096;  ///< windows share a forward up to so many tokens
  /// Fed before a stream's first token, which is then scored too; -1: none. No flag: see
  /// beginning_token().
  std::int64_t beginning = -1;
  /// Documents are pairs: a stream is a target, read with the source before it. No flag: see
  /// pair_windows().
  bool pairs = false;
  void fields(core::FieldList& f);

  bool by_document() const { return restart == "document"; }
};

/// What is remembered at test time, and how it joins the head.
///   p = (1 - l_m - l_c - l_s) p_joint + l_m p_memory + l_c p_cache + l_s p_stores
/// p_joint: the head and, with combine = joint or both, local, long and stores in one softmax
/// (TRIME, eq. 2); p_memory: with combine = interpolate, local and long alone (l_m = memory_lambda,
/// else 0); p_cache: softmax of theta f.f over the `cache` previous positions (Grave et al. 2017);
/// p_stores: what the datastores gave, alone (kNN-LM; see StoreOptions).
/// A source that sees nothing yet gives its share to p_joint.
struct MemoryOptions {
  std::string memory;  ///< none, or a sum of local, long; empty: what the model was trained with
  std::string long_reach;  ///< --long: "12288" tokens or "4seg" segments; empty: 4seg
  std::string combine = "joint";
  /// Divides the scores of local and long, however combined, and of stores that are joined; 0: what
  /// the model was trained with.
  double joint_temperature = 0;
  double memory_lambda = 0.25;
  std::int64_t cache = 0;  ///< positions; 0: no cache
  double cache_theta = 0;  ///< 0: 1 / sqrt(d_model)
  double cache_lambda = 0.1;
  StoreOptions stores;
  std::string tuned_on;  ///< fingerprint of the data these figures were tuned on, for the signature
  std::int64_t long_tokens = 0;  ///< long_reach in tokens, set by resolve(); no flag
  void fields(core::FieldList& f);

  bool interpolated() const { return combine == "interpolate" && memory != "none"; }
  /// Of `memory` alone: names and temperature. Throws Error{usage}.
  nn::MemoryRule rule() const;
};

/// Fills in what is open: window, stride, carry, memory, reach, theta. May be called again.
/// Throws Error{usage} for what contradicts itself or the model.
void resolve(WindowOptions& windows, MemoryOptions& memory, const nn::Model& model,
             const model::TrainingFacts& facts = {});

}  // namespace infer
