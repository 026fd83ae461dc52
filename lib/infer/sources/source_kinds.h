#pragma once
// List of the kinds of sources, one line each, in the order of flags, signatures and mixtures. The
// file with a kind's name defines it.

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
