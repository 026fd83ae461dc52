#pragma once
// The kinds of sources, a line each; each is defined in the file of its name.

#include "infer/sources/source.h"

namespace infer {

const SourceKind& context_kind();  ///< local and long memory
const SourceKind& cache_kind();    ///< the continuous cache
const SourceKind& store_kind();    ///< datastores
const SourceKind& ngram_kind();    ///< n-grams of other texts
const SourceKind& model_kind();    ///< further models

}  // namespace infer
