#pragma once
// List of the kinds of sources, one line each, in the order of flags, signatures and mixtures. The
// file with a kind's name defines it. Together they give
//   p = (1 - l_o) p_rest + l_o p_online, where
//   p_rest = (1 - l_n) ((1 - l_m - l_c - l_u - l_s - l_e) p_joint + l_m p_memory + l_c p_cache
//       + l_u p_unigram + l_s p_stores + l_e p_ensemble) + l_n p_ngrams
// p_joint: one softmax over the head and, with combine = joint or both, local memory, long memory
// and datastores (TRIME, eq. 2), each with its own temperature and log-weight (JointPart).
// p_memory: with combine = interpolate, local and long memory alone (else l_m = 0). p_cache:
// softmax of theta f.f over the previous positions. p_unigram: how often the text so far has each
// token. p_stores: the neighbours from datastores alone (kNN-LM). p_ngrams: counts of the tokens
// that followed the longest matching suffix of the context in other texts; l_n depends on that
// suffix. p_online: the same of the text so far, interpolated down to the whole vocabulary.
// p_ensemble: the softmax of each further model, each with its own weight and temperature.

#include "infer/sources/source.h"

#define INFER_SOURCE_KINDS(KIND)                           \
  KIND(context_kind)      /* local and long memory */      \
  KIND(cache_kind)        /* the continuous cache */       \
  KIND(unigram_kind)      /* tokens of the text */         \
  KIND(store_kind)        /* datastores */                 \
  KIND(ngram_kind)        /* n-grams of other texts */     \
  KIND(online_ngram_kind) /* n-grams of the text so far */ \
  KIND(model_kind)        /* further models */

namespace infer {

#define INFER_DECLARE_KIND(kind) const SourceKind& kind();
INFER_SOURCE_KINDS(INFER_DECLARE_KIND)
#undef INFER_DECLARE_KIND

/// Returns the only object of a kind.
template <class Kind> const SourceKind& only() {
  static const Kind kind;
  return kind;
}

}  // namespace infer
