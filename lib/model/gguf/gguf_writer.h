#pragma once
// Writes GGUF files of version 3 sequentially (layout: gguf_file.h).

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/io.h"
#include "model/gguf/gguf_blocks.h"

namespace model {

using GgufValue = std::variant<bool, std::uint32_t, float, std::string, std::vector<std::string>,
                               std::vector<std::int32_t>, std::vector<float>, std::vector<bool>>;
/// Metadata in the order of writing.
using GgufMetadata = std::vector<std::pair<std::string, GgufValue>>;

/// A tensor to write.
struct GgufNewTensor {
  std::string name;
  std::vector<std::int64_t> shape;  ///< outermost dimension first
  const GgufType* type;             ///< rows consist of whole blocks
  std::size_t bytes() const;
};

/// Writes the file; calls numbers(i) for the elements of each tensor in turn. Throws Error{bug} for
/// rows that are not whole blocks, Error{io}.
void write_gguf(core::ByteSink& sink, const GgufMetadata& metadata,
                const std::vector<GgufNewTensor>& tensors,
                const std::function<std::vector<float>(std::size_t)>& numbers);

}  // namespace model
